"""Supervised warm start: the masked tokens are learnt, the others are not, and it is reproducible."""

import numpy as np
import pytest
import torch
from tests.models import tiny_model, vocabulary

from windage.errors import DataError
from windage.learner.config import LearnerConfig, WarmStartConfig
from windage.learner.model import load_policy
from windage.learner.protocol import Demonstration
from windage.learner.warm_start import imitate


def fresh(folder):
    return load_policy(
        folder, config=LearnerConfig(device="cpu"), limit=vocabulary(folder), temperature=0.5, trust=False
    )


def demonstration(ids, masked):
    ids = np.array(ids, dtype=np.int32)
    return Demonstration(token_ids=ids, mask=np.isin(np.arange(len(ids)), masked))


CONFIG = WarmStartConfig(lr=3e-3, batch=4, warmup=2)


def test_loss_falls_and_only_masked_tokens_are_learnt(tmp_path):
    folder = tiny_model(tmp_path / "m")
    policy = fresh(folder)
    lines = []
    shown = [demonstration([7, 8, 9, 10, 11], [3, 4]), demonstration([7, 9, 8, 12, 13, 14], [3])]
    result = imitate(policy, shown, steps=40, config=CONFIG, seed=0, note=lines.append)
    assert result["loss"] < 0.2 < result["loss_first"]
    assert result["tokens"] == 40 * 6
    assert "40/40" in lines[-1]
    # logits that predict an unmasked token were never trained: 8 after 7 stays a guess
    with torch.no_grad():
        policy.hf.set_attn_implementation("eager")
        logprobs = torch.log_softmax(policy.hf(torch.tensor([[7, 8, 9, 10]])).logits[0], -1)
    assert logprobs[2, 10] > -0.5
    assert logprobs[0, 8] < -1.0


def test_the_cut_into_micro_batches_does_not_matter(tmp_path):
    folder = tiny_model(tmp_path / "m")
    random = np.random.default_rng(0)
    shown = [demonstration(random.integers(5, 80, size), range(2, size)) for size in (5, 9, 14, 30, 3)]
    weights = []
    for tokens in (10, 100000):
        policy = fresh(folder)
        imitate(policy, shown, steps=3, config=CONFIG.model_copy(update={"micro_tokens": tokens}), seed=0)
        weights.append(torch.cat([parameter.detach().flatten() for _, parameter in policy.trainable]))
    torch.testing.assert_close(weights[0], weights[1], atol=3e-4, rtol=0)


def test_same_seed_same_bits(tmp_path):
    folder = tiny_model(tmp_path / "m")
    shown = [demonstration(range(5, 5 + size), range(1, size)) for size in (5, 9, 14)]
    found = []
    for seed in (0, 0, 1):
        policy = fresh(folder)
        imitate(policy, shown, steps=3, config=CONFIG, seed=seed)
        found.append(torch.cat([parameter.detach().flatten() for _, parameter in policy.trainable]))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_nothing_to_imitate_is_refused(tmp_path):
    policy = fresh(tiny_model(tmp_path / "m"))
    with pytest.raises(DataError, match="no demonstration has a token to imitate"):
        imitate(policy, [demonstration([4, 5], [0])], steps=1, config=CONFIG, seed=0)
