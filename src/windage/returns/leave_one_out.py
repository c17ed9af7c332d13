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

    >>> outcomes, groups = torch.tensor([1.0, 0.0, 0.5]), torch.tensor([0, 0, 0])
    >>> segments = Segments.from_lengths([1, 1, 1])
    >>> leave_one_out(outcomes=outcomes, group_of=groups, segments=segments).advantages.tolist()
    [0.75, -0.75, 0.0]

    CODE: RLOO (methods A.5.2).
    """
    found = group_statistics(outcomes=outcomes, group_of=group_of, valid=valid)
    others = found.count / (found.count - 1).clamp(min=1)
    centred = others * (outcomes.double() - found.mean)
    return Credit(advantages=segments.expand(torch.where(found.usable, centred, 0.0).float()))
