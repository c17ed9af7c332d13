"""The recurrence as a Triton kernel: one program a row, an associative scan per block, a carry between blocks."""

# triton ships no type stubs.
# pyright: reportUntypedFunctionDecorator=false, reportMissingImports=false, reportAttributeAccessIssue=false
# pyright: reportUnknownParameterType=false, reportMissingParameterType=false, reportArgumentType=false
# ruff: noqa: ANN001, ANN202

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

__all__ = ["scan_cuda"]

_BLOCK = 1024


@triton.jit
def _join(decay_before, value_before, decay_after, value_after):
    """Two stretches of the recurrence as one: ``x -> value + decay · x``, the first one applied first."""
    return decay_before * decay_after, value_after + decay_after * value_before


@triton.jit
def _kernel(decay_at, increments_at, offsets_at, found_at, backwards: tl.constexpr, block: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    start = tl.load(offsets_at + row)
    length = tl.load(offsets_at + row + 1) - start
    lane = tl.arange(0, block)
    carry = tl.zeros((), dtype=tl.float64)
    for done in range(0, length, block):
        place = done + lane
        inside = place < length
        token = start + (length - 1 - place if backwards else place)
        decay = tl.load(decay_at + token, mask=inside, other=1.0).to(tl.float64)
        decay = tl.where(place == 0, 0.0, decay)
        increment = tl.load(increments_at + token, mask=inside, other=0.0).to(tl.float64)
        product, value = tl.associative_scan((decay, increment), 0, _join)
        found = tl.where(place < block, value, value + product * carry)
        tl.store(found_at + token, found, mask=inside)
        carry = tl.sum(tl.where(lane == block - 1, found, 0.0), axis=0)


def scan_cuda(decay: Tensor, increments: Tensor, offsets: Tensor, *, backwards: bool) -> Tensor:
    """Scan every row on the GPU; float64 inside, the inputs' type outside."""
    found = torch.empty_like(increments)
    rows = len(offsets) - 1
    if rows and len(increments):
        _kernel[(rows,)](decay, increments, offsets, found, backwards, _BLOCK)
    return found
