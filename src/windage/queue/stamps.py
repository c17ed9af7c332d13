"""Stamps: how many tokens a group sampled, and at which versions. Read once, when the group comes back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windage.records import TrajectoryGroup

__all__ = ["Stamps"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamps:
    """``tokens`` sampled, and the ``oldest`` and ``newest`` version among them; -1 when there are none."""

    tokens: int
    oldest: int
    newest: int

    @classmethod
    def of(cls, group: TrajectoryGroup) -> Stamps:
        """One pass over the rows of the surviving members."""
        rows = group.rows
        if not rows:
            return cls(tokens=0, oldest=-1, newest=-1)
        mask = np.concatenate([row.action_mask for row in rows])
        versions = np.concatenate([row.policy_version for row in rows])[mask]
        if not len(versions):
            return cls(tokens=0, oldest=-1, newest=-1)
        return cls(tokens=len(versions), oldest=int(versions.min()), newest=int(versions.max()))
