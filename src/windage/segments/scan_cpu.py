"""The recurrence as a compiled loop for the CPU (numba, cached on disk after the first call)."""

# numba ships no type stubs.
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["scan_cpu"]


def _compiled(function: Callable[..., None]) -> Any:
    """Cached on disk where numba finds a folder it may write to; else compiled once a process."""
    try:
        return njit(cache=True, nogil=True)(function)
    except RuntimeError:
        return njit(nogil=True)(function)


@_compiled
def scan_cpu(
    decay: NDArray[np.floating],
    increments: NDArray[np.floating],
    offsets: NDArray[np.int64],
    found: NDArray[np.floating],
    backwards: bool,
) -> None:
    """Fill ``found``; the running value is float64. The decay at the edge a row starts from is never read."""
    for row in range(len(offsets) - 1):
        start, stop = offsets[row], offsets[row + 1]
        if start == stop:
            continue
        edge = stop - 1 if backwards else start
        step = -1 if backwards else 1
        running = np.float64(increments[edge])
        found[edge] = running
        token = edge
        for _ in range(stop - start - 1):
            token += step
            running = np.float64(increments[token]) + np.float64(decay[token]) * running
            found[token] = running
