"""Truncate: the ratio, clipped to an interval; every token keeps its gradient."""

from __future__ import annotations

import torch
from torch import Tensor

from windage.corrections.weight import Weight

__all__ = ["truncate"]


def truncate(*, log_ratio: Tensor, interval: tuple[float, float] = (0.0, 1.0)) -> Weight:
    """``w_t = clip(ρ_t, low, high)``, detached; (0, 1) is V-trace's, (0, inf) plain importance sampling.

    Args:
        log_ratio: ``log ρ``, [tokens].
        interval: closed interval of weights.

    >>> truncate(log_ratio=torch.tensor([0.0, 1.0])).values.tolist()
    [1.0, 1.0]

    FOUND: IMPALA (1802.01561).
    """
    values = log_ratio.detach().exp().clamp(*interval)
    return Weight(values=values, keep=torch.ones_like(values, dtype=torch.bool))
