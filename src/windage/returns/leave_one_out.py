"""Outcome minus the mean of the other members of the group."""

from __future__ import annotations

import torch
from torch import Tensor

from windage.returns.credit import Credit
from windage.returns.group import group_statistics
from windage.segments import Segments

__all__ = ["leave_one_out"]


def leave_one_out(*, outcomes: Tensor, group_of: Tensor, segments: Segments, valid: Tensor | None = None) -> Credit:
    """``Â_i = R_i - mean_{j≠i} R_j``, which is ``G / (G-1) · (R_i - mean R)``; arguments as in ``group_mean``.

    CODE: RLOO (methods A.5.2).
    """
    found = group_statistics(outcomes=outcomes, group_of=group_of, valid=valid)
    others = found.count / (found.count - 1).clamp(min=1)
    centred = others * (outcomes.double() - found.mean)
    return Credit(advantages=segments.expand(torch.where(found.usable, centred, 0.0).float()))
