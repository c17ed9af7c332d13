"""Outcome minus the mean of the group, over its standard deviation."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from windage.returns.credit import Credit
from windage.returns.group import group_statistics
from windage.segments import Segments

__all__ = ["group_mean"]


def group_mean(
    *,
    outcomes: Tensor,
    group_of: Tensor,
    segments: Segments,
    valid: Tensor | None = None,
    shaping: Tensor | None = None,
    scale: Literal["std", "none"] = "std",
    eps: float = 1e-6,
) -> Credit:
    """``Â_i = (R_i - mean R) / (std R + eps)`` on every token of trajectory i; 0 for a constant group or a singleton.

    Args:
        outcomes: raw outcome of each trajectory, [trajectories]. A group is constant or not by these.
        group_of: group of each trajectory, [trajectories].
        segments: one segment a **trajectory**, however many rows it was cut into.
        valid: False for members that set no baseline and get 0, [trajectories].
        shaping: added to the outcomes before the statistics, [trajectories].
        scale: ``none`` leaves out the division (Dr.GRPO).
        eps: added to the Bessel-corrected standard deviation.

    >>> outcomes, groups = torch.tensor([1.0, 0.0, 7.0]), torch.tensor([0, 0, 1])
    >>> segments = Segments.from_lengths([1, 2, 1])
    >>> group_mean(outcomes=outcomes, group_of=groups, segments=segments, scale="none").advantages.tolist()
    [0.5, -0.5, -0.5, 0.0]

    CODE: GRPO (2402.03300); a singleton gets 0, not its raw outcome.
    """
    usable = group_statistics(outcomes=outcomes, group_of=group_of, valid=valid).usable
    shaped = outcomes.double() if shaping is None else outcomes.double() + shaping.double()
    found = group_statistics(outcomes=shaped, group_of=group_of, valid=valid)
    centred = shaped - found.mean
    scaled = centred / (found.std + eps) if scale == "std" else centred
    return Credit(advantages=segments.expand(torch.where(usable, scaled, 0.0).float()))
