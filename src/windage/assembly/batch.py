"""From chosen groups to a TrainBatch. The store rebuilds batches through the same function, so both are equal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from windage.records import MicroBatch, Row, TrainBatch, TrajectoryGroup

__all__ = ["build_batch", "trainable_rows"]


def trainable_rows(groups: Sequence[TrajectoryGroup]) -> list[tuple[int, int]]:
    """Indices ``(group, row of the group)`` of the rows with at least one action token; the others teach nothing."""
    return [
        (at, index) for at, group in enumerate(groups) for index, row in enumerate(group.rows) if row.action_mask.any()
    ]


def build_batch(
    groups: Sequence[TrajectoryGroup],
    *,
    rows: Sequence[tuple[int, int]],
    micro_batches: Sequence[Sequence[int]],
    step: int,
    version: int,
) -> TrainBatch:
    """A batch of ``rows`` (``(group, row of the group)``, in this order), cut into ``micro_batches`` (indices of rows).

    ``group_of`` and ``trajectory_of`` are dense indices in order of appearance; ``staleness = version - row.version``.

    Raises:
        RecordError: a row is newer than ``version``, or a micro-batch names a row twice or never.
    """
    placed = [_place(groups[group], row) for group, row in rows]
    return TrainBatch(
        step=step,
        version=version,
        rows=tuple(place.row for place in placed),
        rewards=np.array([place.reward for place in placed], np.float32),
        staleness=np.array([version - place.row.version for place in placed], np.int32),
        trajectory_of=_dense([place.row.trajectory_id for place in placed]),
        group_of=_dense([place.row.group_id for place in placed]),
        micro_batches=tuple(
            MicroBatch(rows=tuple(members), tokens=sum(len(placed[at].row) for at in members))
            for members in micro_batches
        ),
        group_ids=tuple(group.group_id for group in groups),
    )


@dataclass(frozen=True, slots=True)
class _Placed:
    row: Row
    reward: float


def _place(group: TrajectoryGroup, index: int) -> _Placed:
    for trajectory in group.trajectories:
        if index < len(trajectory.rows):
            return _Placed(trajectory.rows[index], trajectory.reward)
        index -= len(trajectory.rows)
    raise IndexError(index)


def _dense(names: Sequence[str]) -> np.ndarray[tuple[int], np.dtype[np.int32]]:
    """Index of each name in order of first appearance.

    >>> _dense(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    seen: dict[str, int] = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names], np.int32)
