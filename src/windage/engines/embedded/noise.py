"""Uniform numbers by counter: what a request draws depends on its seed and step alone, never on its neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["derive_seed", "uniforms"]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_MASK = (1 << 64) - 1


def uniforms(seeds: Sequence[int], steps: Sequence[int]) -> NDArray[np.float64]:
    """One number in [0, 1) for each (seed, step).

        u = splitmix64(splitmix64(seed) + step · golden) >> 11, times 2⁻⁵³

    Arguments:
        seeds: any integers, [rows]
        steps: index of the token within its completion, [rows]

    Source: the finaliser of SplitMix64 (Steele, Lea, Flood 2014); its use as a counter-based generator: DERIVED.

    >>> uniforms([7, 7, 8], [0, 1, 0]).round(4).tolist() == uniforms([7], [0]).round(4).tolist() + [
    ...     float(uniforms([7], [1])[0].round(4)),
    ...     float(uniforms([8], [0])[0].round(4)),
    ... ]
    True
    """
    base = _mix(np.array([seed & _MASK for seed in seeds], dtype=np.uint64))
    counter = np.asarray(steps, dtype=np.uint64)
    return (_mix(base + counter * _GOLDEN) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def derive_seed(seed: int, arrival: int) -> int:
    """Seed of a request that brought none: a hash of the engine's seed and the request's order of arrival.

    >>> derive_seed(0, 0) != derive_seed(0, 1)
    True
    """
    both = _mix(np.array([seed & _MASK], dtype=np.uint64)) + np.array([arrival & _MASK], dtype=np.uint64)
    return int(_mix(both)[0])


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    value = value + _GOLDEN
    value = (value ^ (value >> np.uint64(30))) * _MIX_1
    value = (value ^ (value >> np.uint64(27))) * _MIX_2
    return value ^ (value >> np.uint64(31))
