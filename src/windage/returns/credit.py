"""Credit: what a return estimator says about each token."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

__all__ = ["Credit"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Credit:
    """``advantages`` f32 [tokens] for the policy, ``returns`` f32 [tokens] for the critic (None: there is none)."""

    advantages: Tensor
    returns: Tensor | None = None
