"""Tokens by staleness."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["staleness_histogram"]


def staleness_histogram(*, staleness: Tensor, longest: int = 64) -> list[float]:
    """Counts of tokens at 0, 1, …, ``longest`` versions; what is older is counted in the last one.

    >>> staleness_histogram(staleness=torch.tensor([0, 2, 9]), longest=3)
    [1.0, 0.0, 1.0, 1.0]
    """
    counts = torch.bincount(staleness.clamp(0, longest), minlength=longest + 1)
    return [float(count) for count in counts.tolist()]
