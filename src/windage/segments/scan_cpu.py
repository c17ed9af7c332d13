"""The recurrence as a compiled loop for the CPU."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from windage.compiled import cached_jit

__all__ = ["scan_cpu"]


@cached_jit
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
