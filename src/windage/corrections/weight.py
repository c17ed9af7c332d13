"""Weight: what a correction says about each token."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

__all__ = ["Weight"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Weight:
    """``values`` f32 [tokens] and ``keep`` bool [tokens], both detached.

    Tokens outside ``keep`` are selected away, never multiplied by zero: what they hold reaches nothing.
    """

    values: Tensor
    keep: Tensor
