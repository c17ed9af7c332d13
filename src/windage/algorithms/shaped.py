"""Group-relative outcomes with DAPO's length penalty."""

from __future__ import annotations

from torch import Tensor

from windage.returns.credit import Credit
from windage.returns.group_mean import group_mean
from windage.returns.overlong import overlong
from windage.segments import Segments

__all__ = ["shaped"]


def shaped(
    *,
    outcomes: Tensor,
    group_of: Tensor,
    segments: Segments,
    lengths: Tensor,
    limit: int,
    buffer: int,
    valid: Tensor | None = None,
) -> Credit:
    """``group_mean`` of outcome plus penalty; a group is constant or not by its raw outcomes."""
    penalty = overlong(lengths=lengths, limit=limit, buffer=buffer)
    return group_mean(outcomes=outcomes, group_of=group_of, segments=segments, valid=valid, shaping=penalty)
