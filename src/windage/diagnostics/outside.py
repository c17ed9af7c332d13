"""Share of ratios outside a band."""

from __future__ import annotations

import math

from torch import Tensor

__all__ = ["outside"]


def outside(*, log_ratio: Tensor, band: tuple[float, float] = (0.5, 2.0)) -> tuple[float, float]:
    """Shares of tokens at or below, and at or above, the open ``band`` of ratios; denominator: all tokens given."""
    low, high = (math.log(bound) if bound > 0 else -math.inf for bound in band)
    count = max(len(log_ratio), 1)
    return float((log_ratio <= low).sum()) / count, float((log_ratio >= high).sum()) / count
