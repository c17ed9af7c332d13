"""Quantiles that are elements of the data."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor

__all__ = ["quantiles"]


def quantiles(values: Tensor, shares: Sequence[float]) -> dict[float, float]:
    """Lower empirical quantiles: element ``⌈q n⌉`` of the sorted values; NaN without values.

    >>> import torch
    >>> quantiles(torch.tensor([3.0, 1.0, 2.0, 4.0]), (0.5, 1.0))
    {0.5: 2.0, 1.0: 4.0}
    """
    if not len(values):
        return dict.fromkeys(shares, math.nan)
    ordered = values.sort().values
    places = [min(max(math.ceil(share * len(values)), 1), len(values)) - 1 for share in shares]
    return {share: float(ordered[place]) for share, place in zip(shares, places, strict=True)}
