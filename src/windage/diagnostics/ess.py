"""Effective sample size of importance weights."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["ess"]


def ess(*, log_weights: Tensor) -> float:
    """``(Σ w)² / Σ w² / n``, in (1/n, 1], by log-sum-exp in float64; NaN without weights.

    >>> ess(log_weights=torch.zeros(4))
    1.0
    """
    if not len(log_weights):
        return float("nan")
    wide = log_weights.double()
    share = 2 * torch.logsumexp(wide, 0) - torch.logsumexp(2 * wide, 0)
    return float(share.exp() / len(wide))
