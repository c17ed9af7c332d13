"""Staging refuses whatever would leave the model half-updated; a swap is complete; the fingerprint sees every bit."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.unit.engines.harness import Harness, ask, plain_logprobs, published

from windage.engines.embedded.weights import fingerprint, owned_weights, read_marker, stage, swap
from windage.errors import EngineError


@pytest.fixture
def folder(qwen, tmp_path):
    return published(qwen, tmp_path / "v1", 1)


def edit(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors")


def shrink(tensors):
    name = "model.layers.1.mlp.down_proj.weight"
    tensors[name] = tensors[name][:, :-1].contiguous()


def poison(tensors):
    tensors["model.layers.0.input_layernorm.weight"][3] = torch.nan


def explode(tensors):
    tensors["model.embed_tokens.weight"][0, 0] = torch.inf


def rename(tensors):
    tensors["model.layers.0.self_attn.strange.weight"] = tensors.pop("model.layers.0.self_attn.q_proj.weight")


SPOILED = {
    "no marker": (lambda f: (f / "COMMITTED").unlink(), "not committed"),
    "bad marker": (lambda f: (f / "COMMITTED").write_text("{}"), "cannot read"),
    "marker of another version": (
        lambda f: (f / "COMMITTED").write_text(json.dumps({"version": 7})),
        "another version; got 7; expected 1",
    ),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), "no weights"),
    "truncated file": (
        lambda f: (f / "model.safetensors").write_bytes((f / "model.safetensors").read_bytes()[:-100]),
        "cannot read",
    ),
    "wrong shape": (lambda f: edit(f, shrink), "shape of model.layers.1.mlp.down_proj.weight"),
    "NaN": (lambda f: edit(f, poison), "not finite"),
    "inf": (lambda f: edit(f, explode), "not finite"),
    "missing name": (lambda f: edit(f, rename), "missing"),
    "no folder": (shutil.rmtree, "not committed"),
}


@pytest.mark.parametrize("case", SPOILED)
def test_spoiled_folders_are_refused_and_the_old_weights_stay(qwen, folder, case):
    spoil, words = SPOILED[case]
    spoil(folder)
    harness = Harness(qwen)
    before = fingerprint(owned_weights(harness.model.hf).items())
    with pytest.raises(EngineError, match=words):
        stage(harness.model.hf, 1, str(folder))
    assert fingerprint(owned_weights(harness.model.hf).items()) == before


@pytest.mark.parametrize("shape", ["qwen3", "llama", "qwen2", "gpt2", "mixtral", "qwen3_moe"])
@pytest.mark.parametrize("tied", [True, False])
def test_after_a_swap_the_engine_serves_the_new_weights(model_folder, tmp_path, shape, tied):
    if shape == "gpt2" and not tied:
        pytest.skip("GPT-2 ties its head")
    source = model_folder(shape, tied=tied)
    folder = published(source, tmp_path / "v1", 1)
    harness = Harness(source)
    staged = stage(harness.model.hf, 1, str(folder))
    swap(harness.model.hf, staged)
    harness.model.refresh()
    assert staged.fingerprint == fingerprint(owned_weights(harness.model.hf).items())
    done = harness.run([ask(range(5, 20), max_tokens=6)])[0]
    expected = plain_logprobs(folder, [*range(5, 20), *done.token_ids.tolist()])[14:]
    np.testing.assert_allclose(done.logprobs, expected, atol=2e-4)


def test_tied_head_may_be_in_the_file_or_not(qwen, folder):
    model = Harness(qwen).model.hf
    without = stage(model, 1, str(folder))
    edit(folder, lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"].clone()}))
    assert stage(model, 1, str(folder)).fingerprint == without.fingerprint


def test_weights_that_overflow_the_engine_s_dtype_are_refused(qwen, folder):
    edit(folder, lambda t: t["model.norm.weight"].fill_(1e38))
    stage(Harness(qwen).model.hf, 1, str(folder))
    with pytest.raises(EngineError, match=r"not finite in torch\.float16"):
        stage(Harness(qwen, dtype="float16").model.hf, 1, str(folder))


def test_fingerprint_sees_one_bit_and_names():
    base = {"a": torch.zeros(4), "b": torch.ones(2, 3)}
    flipped = {"a": torch.tensor([0.0, 0, -0.0, 0]), "b": torch.ones(2, 3)}
    swapped = {"b": torch.zeros(4), "a": torch.ones(2, 3)}
    prints = {fingerprint(each.items()) for each in (base, flipped, swapped)}
    assert len(prints) == 3
    assert fingerprint(reversed(list(base.items()))) == fingerprint(base.items())


def test_read_marker(folder):
    assert read_marker(folder) == 1
