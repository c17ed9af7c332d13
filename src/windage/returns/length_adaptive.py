"""Length-adaptive λ: longer episodes look further ahead."""

from __future__ import annotations

from torch import Tensor

from windage.segments import Segments

__all__ = ["length_adaptive"]


def length_adaptive(*, segments: Segments, alpha: float = 1.5) -> Tensor:
    """``λ = max(0, 1 - 1 / (α L))`` for each row of L action tokens, f32 [rows].

    SAO (2607.07508, SECONDARY) uses α = 1.5, VAPO (2504.05118, CODE) 0.05.

    >>> length_adaptive(segments=Segments.from_lengths([2, 20, 0]), alpha=0.05).tolist()
    [0.0, 0.0, 0.0]
    >>> length_adaptive(segments=Segments.from_lengths([2]), alpha=1.0).tolist()
    [0.5]
    """
    return (1 - 1 / (alpha * segments.lengths.clamp(min=1).float())).clamp(min=0.0)
