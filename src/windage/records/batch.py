"""TrainBatch: what the assembler hands to the learner, one optimizer step's worth."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windage.errors import RecordError, explain
from windage.records.trajectory import Row

__all__ = ["MicroBatch", "TrainBatch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """Indices into ``TrainBatch.rows`` that share one packed forward pass."""

    rows: tuple[int, ...]
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainBatch:
    """Rows of whole groups, their cut into packed micro-batches, and the raw outcome of each trajectory.

    ``step``         index of the batch, 0, 1, 2, … (batches, not versions)
    ``version``      learner's published version when the batch was taken
    ``rewards``      f32 [len(rows)]   raw outcome of the row's trajectory (group statistics use it)
    ``staleness``    int32 [len(rows)] ``version`` - row version
    ``trajectory_of`` / ``group_of``   int32 [len(rows)] dense indices: siblings share a group,
                                       the forks of one episode share a trajectory
    """

    step: int
    version: int
    rows: tuple[Row, ...]
    rewards: NDArray[np.float32]
    staleness: NDArray[np.int32]
    trajectory_of: NDArray[np.int32]
    group_of: NDArray[np.int32]
    micro_batches: tuple[MicroBatch, ...]
    group_ids: tuple[str, ...]

    def __post_init__(self) -> None:
        count = len(self.rows)
        lengths = {name: len(getattr(self, name)) for name in ("rewards", "staleness", "trajectory_of", "group_of")}
        if any(length != count for length in lengths.values()):
            raise RecordError(explain("batch arrays disagree in length", got=lengths, expected=f"all {count} (rows)"))
        placed = sorted(index for micro in self.micro_batches for index in micro.rows)
        if placed != list(range(count)):
            raise RecordError(
                explain("micro-batches must hold every row exactly once", got=placed[:32], expected=f"0..{count - 1}")
            )
        if (self.staleness < 0).any():
            raise RecordError(
                explain(
                    "negative staleness",
                    got=int(self.staleness.min()),
                    expected=">= 0",
                    do="a token is stamped with a version the learner has not published yet",
                )
            )

    @property
    def action_tokens(self) -> int:
        """Sampled tokens in the batch: the global denominator of token-mean."""
        return sum(row.action_tokens for row in self.rows)
