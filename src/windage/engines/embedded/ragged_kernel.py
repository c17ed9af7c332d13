"""Decode attention on the CPU: one compiled loop that reads exactly the cached tokens of each row, in place.

Padded kernels read every row up to the longest and want the rows next to each other; sequences of unequal length in
slots that come and go are what an engine has. numba compiles once and keeps the result on disk.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from windage.compiled import cached_jit

__all__ = ["make_kernel"]

_WORTH_A_THREAD = 1 << 19  # multiplications below which handing work to a thread costs more than it saves


def make_kernel(threads: int) -> Any:
    """A function (query, keys, values, slots, lengths, scale, window) -> mixed, for float32 CPU tensors.

    ``query`` [rows, heads, dim] · ``keys``/``values`` [slots, kv_heads, capacity, dim] · ``slots``/``lengths`` int64
    [rows] · ``window`` 0 = no limit. Returns [rows, heads, value_dim], the same bits for any number of threads.
    """
    helpers = ThreadPoolExecutor(threads - 1, thread_name_prefix="attention") if threads > 1 else None

    def ragged(
        query: Tensor, keys: Tensor, values: Tensor, slots: Tensor, lengths: Tensor, scale: float, window: int
    ) -> Tensor:
        out = torch.empty(*query.shape[:2], values.shape[-1])
        arrays = (query.contiguous().numpy(), keys.numpy(), values.numpy(), slots.numpy(), lengths.numpy())
        rest = (np.float32(scale), window, out.numpy())
        if helpers is None or int(lengths.sum()) * query.shape[1] * query.shape[2] < _WORTH_A_THREAD:
            _loop(0, 1, *arrays, *rest)
            return out
        shares = [helpers.submit(_loop, first, threads, *arrays, *rest) for first in range(1, threads)]
        _loop(0, threads, *arrays, *rest)
        for share in shares:
            share.result()
        return out

    one = torch.zeros(1, 2, 4)
    ragged(one, one[:, None], one[:, None], torch.zeros(1, dtype=torch.long), torch.ones(1, dtype=torch.long), 1.0, 0)
    return ragged


def _row(
    query: Any, keys: Any, values: Any, row: int, head: int, slot: int, length: int, scale: Any, window: int, out: Any
) -> None:
    group = query.shape[1] // keys.shape[1]
    dim, value_dim = keys.shape[3], values.shape[3]
    first = max(0, length - window) if window > 0 else 0
    count = length - first
    scores = np.empty((group, count), np.float32)
    key_rows = keys[slot, head]
    value_rows = values[slot, head]
    base = head * group
    for t in range(count):
        for g in range(group):
            total = np.float32(0.0)
            for d in range(dim):
                total += query[row, base + g, d] * key_rows[first + t, d]
            scores[g, t] = total * scale
    for g in range(group):
        peak = np.float32(-np.inf)
        for t in range(count):
            peak = max(peak, scores[g, t])
        mass = np.float32(0.0)
        for t in range(count):
            weight = math.exp(scores[g, t] - peak)
            scores[g, t] = weight
            mass += np.float32(weight)
        for d in range(value_dim):
            out[row, base + g, d] = np.float32(0.0)
        for t in range(count):
            weight = scores[g, t] / mass
            for d in range(value_dim):
                out[row, base + g, d] += weight * value_rows[first + t, d]


# Contraction and reassociation only: no assumption that numbers are finite, so a NaN stays a NaN.
_FLAGS = {"reassoc", "contract", "nsz", "arcp"}
# Inlined by numba, not by the linker, and threads are ours, not numba's: where there is a second compiled function, the
# process that compiles runs another copy of it (other last bits) than the processes that load the result from disk.
_row_inlined = numba.njit(_row, fastmath=_FLAGS, inline="always")


def _rows(
    first: int,
    step: int,
    query: Any,
    keys: Any,
    values: Any,
    slots: Any,
    lengths: Any,
    scale: Any,
    window: int,
    out: Any,
) -> None:
    """Every ``step``-th pair of row and key head, from ``first``."""
    heads = keys.shape[1]
    for item in range(first, query.shape[0] * heads, step):
        row, head = item // heads, item % heads
        _row_inlined(query, keys, values, row, head, slots[row], lengths[row], scale, window, out)


_loop = cached_jit(_rows, fastmath=_FLAGS)
