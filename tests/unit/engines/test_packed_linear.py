"""The packed product is the product; small or many-rowed ones take the plain way."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.unit.engines.harness import Harness, ask, plain_logprobs, published

from windage.engines.embedded.packed_linear import PackedLinear, packing_works
from windage.engines.embedded.weights import stage, swap


@pytest.mark.skipif(not packing_works(), reason="this torch has no oneDNN product")
@pytest.mark.parametrize("rows", [1, 3, 32, 128, 129])
@pytest.mark.parametrize("bias", [True, False])
def test_equals_the_plain_product(rows, bias):
    noise = torch.Generator().manual_seed(0)
    weight = torch.randn(700, 400, generator=noise)
    added = torch.randn(700, generator=noise) if bias else None
    inputs = torch.randn(rows, 400, generator=noise)
    packed = PackedLinear(weight, added, pack=True)
    assert packed._packed is not None
    expected = inputs.double() @ weight.double().T + (0 if added is None else added.double())
    np.testing.assert_allclose(packed(inputs), expected, atol=1e-4)
    assert PackedLinear(weight, added, pack=False)._packed is None
    assert PackedLinear(weight[:100], None, pack=True)._packed is None


def test_a_swap_repacks(model_folder, tmp_path):
    """A model large enough to be packed: after a swap nothing of the old weights is left in a packed copy."""
    source = model_folder("qwen3", hidden=512, layers=1, scale=1.0)
    folder = published(source, tmp_path / "v1", 1, size=0.02)
    harness = Harness(source)
    assert harness.model.lean.layers[0].gate_up._packed is not None
    swap(harness.model.hf, stage(harness.model.hf, 1, str(folder)))
    harness.model.refresh()
    done = harness.run([ask(range(5, 20), max_tokens=6)])[0]
    whole = [*range(5, 20), *done.token_ids.tolist()]
    np.testing.assert_allclose(done.logprobs, plain_logprobs(folder, whole)[14:], atol=2e-4)
    assert np.abs(done.logprobs - plain_logprobs(source, whole)[14:]).max() > 1e-2
