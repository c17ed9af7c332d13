"""The compiled decode attention: right, and the same bits whoever compiled it and on any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from windage.engines.embedded.ragged_kernel import make_kernel

LENGTHS = torch.tensor([37, 1, 200, 64, 5])
SLOTS = torch.tensor([4, 0, 3, 1, 6])
ARRAYS = """
import hashlib, torch
from windage.engines.embedded.ragged_kernel import make_kernel
seeded = torch.Generator().manual_seed(0)
shapes = ((5, 6, 32), (7, 3, 256, 32), (7, 3, 256, 32))
query, keys, values = (torch.randn(*shape, generator=seeded) for shape in shapes)
digest = hashlib.sha256()
for threads in (1, 3):
    kernel = make_kernel(threads)
    digest.update(b"|")
    for length in range(1, 40):
        lengths = torch.tensor([length, 1, 2 * length, 200, 256])
        found = kernel(query, keys, values, torch.tensor([4, 0, 3, 1, 6]), lengths, 0.2, 0)
        digest.update(found.numpy().tobytes())
print(digest.hexdigest())
"""


def arrays():
    seeded = torch.Generator().manual_seed(0)
    return (
        torch.randn(5, 6, 32, generator=seeded),
        torch.randn(7, 3, 256, 32, generator=seeded),
        torch.randn(7, 3, 256, 32, generator=seeded),
    )


@pytest.mark.parametrize("window", [0, 16])
def test_it_is_softmax_attention_over_the_cached_tokens(window):
    query, keys, values = arrays()
    found = make_kernel(1)(query, keys, values, SLOTS, LENGTHS, 0.2, window)
    for row, (slot, length) in enumerate(zip(SLOTS.tolist(), LENGTHS.tolist(), strict=True)):
        first = max(0, length - window) if window else 0
        for head in range(6):
            key, value = keys[slot, head // 2, first:length].double(), values[slot, head // 2, first:length].double()
            expected = torch.softmax(key @ query[row, head].double() * 0.2, 0) @ value
            torch.testing.assert_close(found[row, head].double(), expected, rtol=1e-5, atol=1e-6)


def test_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr("windage.engines.embedded.ragged_kernel._WORTH_A_THREAD", 0)
    alone, together = make_kernel(1), make_kernel(3)
    assert torch.equal(alone(*arrays(), SLOTS, LENGTHS, 0.2, 0), together(*arrays(), SLOTS, LENGTHS, 0.2, 0))


@pytest.mark.process
def test_the_process_that_compiles_and_the_one_that_loads_agree_to_the_bit(tmp_path):
    def digest() -> str:
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-c", ARRAYS], env=environment, capture_output=True, text=True, check=True
        ).stdout

    compiled = digest()
    assert list(tmp_path.rglob("*.nbc")), "nothing was kept on disk: the second process would compile too"
    assert digest() == compiled
