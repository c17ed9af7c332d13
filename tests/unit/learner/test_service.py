"""The service behind the process: versions in order, whole models published, exact restore through files."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.models import char_tokenizer, tiny_model
from tests.unit.learner.batches import make_batch
from transformers import AutoModelForCausalLM, AutoTokenizer

from windage.algorithms import names
from windage.errors import ConfigError, DataError, LearnerError, PublishError
from windage.learner.config import LearnerConfig, LoraConfig
from windage.learner.critic_config import CriticConfig
from windage.learner.protocol import Demonstration
from windage.learner.service import Service
from windage.learner.setup import LearnerSetup


def service(tmp_path, *, model=None, algorithm=None, name="run", **learner):
    folder = model or tmp_path / "model"
    if not folder.exists():
        tiny_model(folder)
    return Service(
        LearnerSetup(
            learner=LearnerConfig(device="cpu", critic=CriticConfig(warmup=1), **{"lr": 1e-3, **learner}),
            model={"name": "path", "path": str(folder)},
            algorithm={"name": "copc"} if algorithm is None else algorithm,
            publish_folder=str(tmp_path / name),
        )
    )


def weights(one):
    return {f"{n}.{k}": v.clone() for n, m in one.state.modules.items() for k, v in m.state_dict().items()}


def plain_scores(path, ids):
    model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32).eval()
    with torch.no_grad():
        logprobs = torch.log_softmax(model(torch.tensor(ids.astype(np.int64))[None]).logits[0], -1)
    return logprobs[:-1].gather(1, torch.tensor(ids[1:].astype(np.int64))[:, None])[:, 0].numpy()


@pytest.mark.parametrize("lora", [None, LoraConfig(rank=4)])
def test_a_published_version_is_a_whole_model_that_scores_the_probe(tmp_path, lora):
    one = service(tmp_path, lora=lora, algorithm={"name": "grpo"})
    first = one.publish(0)
    assert one.train(make_batch(0)).outcome == "updated"
    second = one.publish(1)
    assert first.fingerprint != second.fingerprint
    assert np.isnan(second.probe_logprobs[0])
    for version in (first, second):
        np.testing.assert_allclose(plain_scores(version.path, version.probe_ids), version.probe_logprobs[1:], atol=1e-4)
    assert not np.allclose(first.probe_logprobs[1:], second.probe_logprobs[1:], atol=1e-5)
    original = set(load_file(tmp_path / "model" / "model.safetensors"))
    assert set(load_file(f"{second.path}/model.safetensors")) == original
    assert len(AutoTokenizer.from_pretrained(second.path)) == one.vocab_size


def test_bf16_products_keep_float32_weights_and_publish_bf16(tmp_path):
    one = service(tmp_path, dtype="bf16", algorithm={"name": "grpo"})
    assert one.train(make_batch(0)).outcome == "updated"
    published = one.publish(0)
    assert {p.dtype for _, p in one.state.policy.trainable} == {torch.float32}
    tensors = load_file(f"{published.path}/model.safetensors")
    assert {tensor.dtype for tensor in tensors.values()} == {torch.bfloat16}
    np.testing.assert_allclose(
        plain_scores(published.path, published.probe_ids), published.probe_logprobs[1:], atol=0.2
    )


def test_versions_are_published_in_order_and_old_ones_go(tmp_path):
    one = service(tmp_path)
    with pytest.raises(PublishError, match="in order"):
        one.publish(1)
    for version in range(4):
        one.publish(version)
    one.publish(3)
    with pytest.raises(PublishError, match="in order"):
        one.publish(2)
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["version-2", "version-3"]


def test_weights_that_are_no_numbers_are_never_published(tmp_path):
    one = service(tmp_path)
    one.publish(0)
    with torch.no_grad():
        one.state.policy.head.weight[3, 3] = torch.inf
    with pytest.raises(PublishError, match="version 1 refused"):
        one.publish(1)
    assert one.status().version == 0
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["version-0"]


@pytest.mark.parametrize("algorithm", ["copc", "grpo"])
def test_n_batches_equal_m_and_restore_and_the_rest(tmp_path, algorithm):
    settings = {"algorithm": {"name": algorithm}, "updates_per_batch": 2}
    straight = service(tmp_path, **settings)
    for step in range(3):
        straight.train(make_batch(step))
    straight.publish(0)
    straight.save(str(tmp_path / "checkpoint"))
    for step in range(3, 6):
        straight.train(make_batch(step))

    resumed = service(tmp_path, name="again", **settings)
    status = resumed.load(str(tmp_path / "checkpoint"))
    assert (status.step, status.version) == (3, 0)
    for step in range(3, 6):
        resumed.train(make_batch(step))
    left, right = weights(straight), weights(resumed)
    assert all(torch.equal(left[name], right[name]) for name in left)


def test_warm_start_comes_first_and_moves_no_version(tmp_path):
    one = service(tmp_path)
    shown = [Demonstration(token_ids=np.array([5, 6, 7], dtype=np.int32), mask=np.array([False, True, True]))]
    one.warm_start(shown, steps=2)
    assert one.status().version == -1
    one.publish(0)
    with pytest.raises(LearnerError, match="before the first publish"):
        one.warm_start(shown, steps=2)


def test_a_random_model_takes_its_vocabulary_from_the_tokenizer(tmp_path):
    tokenizer = char_tokenizer()
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    model = {"name": "qwen3_random", "hidden": 32, "layers": 1, "intermediate": 32}
    setup = LearnerSetup(
        learner=LearnerConfig(device="cpu"),
        model=model,
        algorithm={"name": "grpo"},
        tokenizer=str(tmp_path / "tokenizer"),
        publish_folder=str(tmp_path / "run"),
    )
    one = Service(setup)
    assert one.vocab_size == len(tokenizer)
    assert len(one.state.policy.head.weight) == len(tokenizer)
    assert len(AutoTokenizer.from_pretrained(one.model_folder)) == len(tokenizer)
    other = Service(setup.model_copy(update={"publish_folder": str(tmp_path / "other")}))
    assert one.publish(0).fingerprint == other.publish(0).fingerprint


def test_the_padded_vocabulary_is_cut_before_the_softmax(tmp_path):
    one = service(tmp_path, model=tiny_model(tmp_path / "padded", padded_vocab=30))
    with torch.no_grad():
        one.state.policy.head.weight[one.vocab_size :] = 50.0
    scores = one._score(np.array([5, 6, 7], dtype=np.int32))
    assert (scores[1:] > -30).all()


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"algorithm": {}}, ConfigError, "algorithm.name is missing"),
        ({"algorithm": {"name": "grpoo"}}, ConfigError, "grpo"),
        ({"freeze_layers": 2}, ConfigError, "leaves nothing to train"),
        ({"lora": LoraConfig(targets=("nothing",))}, ConfigError, "match nothing"),
    ],
)
def test_a_setup_that_cannot_work_is_refused(tmp_path, settings, error, words):
    with pytest.raises(error, match=words):
        service(tmp_path, **settings)


def test_a_missing_model_is_one_clear_error(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"no model.*empty"):
        service(tmp_path, model=tmp_path / "empty")


@pytest.mark.parametrize("frozen", [0, 1])
def test_frozen_layers_stay(tmp_path, frozen):
    one = service(tmp_path, freeze_layers=frozen, algorithm={"name": "grpo"})
    before = weights(one)
    one.train(make_batch(0))
    moved = {name for name, tensor in weights(one).items() if not torch.equal(tensor, before[name])}
    assert any(".layers.1." in name for name in moved)
    assert any(".layers.0." in name or "embed" in name for name in moved) == (not frozen)


@pytest.mark.parametrize("algorithm", sorted(names()))
def test_every_algorithm_of_the_table_trains(tmp_path, algorithm):
    one = service(tmp_path, algorithm={"name": algorithm})
    reports = [one.train(make_batch(step, cut=[[0, 3], [1, 2, 5], [4]])) for step in range(2)]
    first = "critic_only" if one.algorithm.critic else "updated"
    assert [report.outcome for report in reports] == [first, "updated"]
    assert all(np.isfinite(value) for report in reports for value in report.metrics.values())
    assert {"loss", "ess", "kl", "grad_norm"} <= reports[1].metrics.keys()
