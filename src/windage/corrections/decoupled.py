"""Decoupled: the weight between the sampling policy and the policy at batch entry."""

from __future__ import annotations

import math

from torch import Tensor

from windage.corrections.mask import mask
from windage.corrections.weight import Weight

__all__ = ["decoupled"]


def decoupled(*, entry_log_ratio: Tensor, weight_max: float = 5.0) -> Weight:
    """``w_t = π_entry / μ``, detached; a token with ``w_t >= weight_max`` does not count.

    Args:
        entry_log_ratio: ``log π_entry - log μ``, [tokens].
        weight_max: smallest weight that is refused.

    CODE: AReaL (2505.24298), whose default drops a token above 5.
    """
    return mask(log_ratio=entry_log_ratio, band=(-math.inf, weight_max))
