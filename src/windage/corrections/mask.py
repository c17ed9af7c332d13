"""Mask: tokens whose ratio leaves an interval do not count; the others weigh their ratio."""

from __future__ import annotations

import math

from torch import Tensor

from windage.corrections.weight import Weight

__all__ = ["mask"]


def mask(*, log_ratio: Tensor, band: tuple[float, float] = (0.5, 2.0)) -> Weight:
    """``ω_t = ρ_t · 1[low < ρ_t < high]``, detached. A NaN is kept, so that it is seen.

    Args:
        log_ratio: ``log ρ``, [tokens].
        band: open interval of ratios.

    >>> import torch
    >>> mask(log_ratio=torch.tensor([-1.0, 0.0, 1.0])).keep.tolist()
    [False, True, False]

    SECONDARY for SAO (2607.07508), FOUND in words for COPC (2610.09597): token-level masking of the update.
    """
    log_ratio = log_ratio.detach()
    low, high = (math.log(bound) if bound > 0 else -math.inf for bound in band)
    return Weight(values=log_ratio.exp(), keep=~((log_ratio <= low) | (log_ratio >= high)))
