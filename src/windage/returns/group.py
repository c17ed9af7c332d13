"""Group statistics over trajectories, by explicit group index."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["GroupStatistics", "group_statistics"]

_NOISE = 1e-6
"""Outcomes of a group that differ by less than this (relative to their size) are equal."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupStatistics:
    """Per trajectory, float64: its group's mean, Bessel-corrected std and size; ``usable`` where they mean something.

    ``usable`` is False for a constant group, a singleton, and a member that is not valid.
    """

    mean: Tensor
    std: Tensor
    count: Tensor
    usable: Tensor


def group_statistics(*, outcomes: Tensor, group_of: Tensor, valid: Tensor | None = None) -> GroupStatistics:
    """Statistics of ``outcomes`` [trajectories] inside each group; members that are not ``valid`` set no baseline."""
    outcomes = outcomes.double()
    valid = torch.ones_like(group_of, dtype=torch.bool) if valid is None else valid
    _, group = torch.unique(group_of, return_inverse=True)
    groups = len(group_of)

    def total(values: Tensor) -> Tensor:
        return outcomes.new_zeros(groups).index_add(0, group, torch.where(valid, values, 0.0))

    count = total(torch.ones_like(outcomes))
    mean = (total(outcomes) / count.clamp(min=1))[group]
    variance = total((outcomes - mean).square()) / (count - 1).clamp(min=1)
    low, high = (_extreme(outcomes, group, valid, kind) for kind in ("amin", "amax"))
    noise = _NOISE * torch.maximum(low.abs(), high.abs()).clamp(min=1)
    usable = valid & (count > 1)[group] & (high - low > noise)[group]
    return GroupStatistics(mean=mean, std=variance.sqrt()[group], count=count[group], usable=usable)


def _extreme(outcomes: Tensor, group: Tensor, valid: Tensor, kind: str) -> Tensor:
    chosen = outcomes[valid]
    return outcomes.new_zeros(len(outcomes)).scatter_reduce(0, group[valid], chosen, kind, include_self=False)
