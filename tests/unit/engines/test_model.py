"""The packed forward computes what the Hugging Face modules compute, for every architecture and every cut."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.models import SHAPES
from tests.unit.engines.harness import Harness, ask, plain_logprobs, prompts

from windage.engines.config import EngineConfig
from windage.engines.embedded.model import ServedModel
from windage.engines.embedded.scorer import score_in_chunks
from windage.errors import ConfigError, DataError


def score(model, rows, *, temperature=1.0, chunk=64):
    with torch.inference_mode():
        return [s for part in score_in_chunks(model, rows, temperature=temperature, chunk=chunk) for s in part]


@pytest.mark.parametrize("shape", SHAPES)
def test_scores_equal_a_plain_forward(model_folder, shape):
    folder = model_folder(shape)
    harness = Harness(folder)
    rows = [np.array(row) for row in prompts(9, shortest=1)]
    scores = score(harness.model, rows)
    for row, got in zip(rows, scores, strict=True):
        assert np.isnan(got[0])
        assert got.dtype == np.float32
        np.testing.assert_allclose(got[1:], plain_logprobs(folder, row), atol=2e-4)
    gaps = np.concatenate([np.abs(s[1:] - plain_logprobs(folder, r)) for r, s in zip(rows, scores, strict=True)])
    assert gaps.mean() < 1e-4


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("settings", [{}, {"attention": "sdpa", "prefill_tokens": 7}], ids=["ragged", "sdpa-chunked"])
def test_sampled_logprobs_equal_a_plain_forward(model_folder, shape, settings):
    folder = model_folder(shape)
    harness = Harness(folder, **settings)
    requests = [ask(row, seed=i, temperature=0.7) for i, row in enumerate(prompts(5))]
    for request, done in zip(requests, harness.run(requests), strict=True):
        whole = [*request.prompt_ids.tolist(), *done.token_ids.tolist()]
        expected = plain_logprobs(folder, whole, temperature=0.7)[len(request.prompt_ids) - 1 :]
        np.testing.assert_allclose(done.logprobs, expected, atol=2e-4)
        assert np.abs(done.logprobs - expected).mean() < 1e-4


def test_sliding_window_is_respected(model_folder):
    """Without the window the scores would differ: the test can fail."""
    folder = model_folder("mistral_window")
    row = np.array(prompts(1, shortest=40)[0])
    windowed = score(Harness(folder).model, [row])[0][1:]
    config = folder / "config.json"
    text = config.read_text()
    try:
        config.write_text(text.replace('"sliding_window": 8', '"sliding_window": null'))
        full = plain_logprobs(folder, row)
    finally:
        config.write_text(text)
    assert np.abs(windowed - full).max() > 1e-2


def test_untied_head_and_hf_forward(model_folder):
    folder = model_folder("qwen3", tied=False)
    row = np.array(prompts(1, shortest=30)[0])
    lean = Harness(folder)
    hf = Harness(folder, forward="hf")
    assert lean.model.lean is not None
    assert hf.model.lean is None
    np.testing.assert_allclose(score(lean.model, [row])[0][1:], score(hf.model, [row])[0][1:], atol=1e-4)


def test_padded_vocabulary_is_never_scored_or_sampled(model_folder):
    folder = model_folder("qwen3", padded_vocab=32, scale=0.2)
    harness = Harness(folder)
    words = harness.model.limit
    assert words == len(harness.model.tokenizer)
    done = harness.run([ask([7, 8, 9], seed=seed, max_tokens=60, temperature=5.0) for seed in range(12)])
    ids = np.concatenate([each.token_ids for each in done])
    assert ids.max() < words
    whole = [7, 8, 9, *done[0].token_ids.tolist()]
    expected = plain_logprobs(folder, whole, temperature=5.0, words=words)[2:]
    np.testing.assert_allclose(done[0].logprobs, expected, atol=1e-4)
    unpadded = plain_logprobs(folder, whole, temperature=5.0)[2:]
    assert np.abs(expected - unpadded).min() > 0.1  # normalising over the padding would show


def test_temperature_of_scores(qwen):
    row = np.array(prompts(1, shortest=12)[0])
    got = score(Harness(qwen).model, [row], temperature=2.0)[0][1:]
    np.testing.assert_allclose(got, plain_logprobs(qwen, row, temperature=2.0), atol=1e-4)


def test_bfloat16_is_close(qwen):
    row = np.array(prompts(1, shortest=12)[0])
    model = ServedModel(EngineConfig(model=str(qwen), dtype="bfloat16"))
    got = score(model, [row])[0][1:]
    assert np.abs(got - plain_logprobs(qwen, row)).mean() < 0.3


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"vocab_size": 100_000}, "vocab_size"),
        ({"max_context": 100_000}, "max_context"),
        ({"device": "cuda:77"}, "CUDA"),
        ({"device": "abacus"}, "device"),
        ({"routes": True}, "routers"),
    ],
)
def test_impossible_settings_are_refused(qwen, settings, words):
    if words == "CUDA" and torch.cuda.is_available():
        pytest.skip("has CUDA")
    with pytest.raises(ConfigError, match=words):
        ServedModel(EngineConfig(model=str(qwen), **settings))


def test_lean_forward_is_refused_where_it_does_not_apply(model_folder):
    with pytest.raises(ConfigError, match="lean"):
        ServedModel(EngineConfig(model=str(model_folder("gpt2")), forward="lean"))


def test_missing_model(tmp_path):
    with pytest.raises(DataError, match="no model"):
        ServedModel(EngineConfig(model=str(tmp_path)))
