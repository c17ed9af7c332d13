"""FifoAssembler: oldest first. The default, and the only one that needs no scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windage.assembly.batch import build_batch, trainable_rows
from windage.assembly.config import AssemblyConfig
from windage.assembly.packing import pack
from windage.assembly.protocol import Choices
from windage.records import TrainBatch, TrajectoryGroup

__all__ = ["FifoAssembler"]


@dataclass(frozen=True, slots=True)
class FifoAssembler:
    """Takes the oldest eligible group, again and again. Rows of a batch are in the order of admission."""

    config: AssemblyConfig

    def choose(self, choices: Choices, count: int) -> None:
        """Pick the oldest ``count`` groups that the window lets through."""
        for group in choices.reachable(count):
            choices.pick(group)

    def build(self, groups: Sequence[TrajectoryGroup], *, step: int, version: int) -> TrainBatch:
        """Groups by position, rows in their order, packed under ``token_budget``.

        Raises:
            DataError: a row is longer than the token budget, and ``long_rows`` is ``error``.
        """
        ordered = sorted(groups, key=lambda group: group.position)
        rows = trainable_rows(ordered)
        lengths = [len(ordered[group].rows[row]) for group, row in rows]
        bins = pack(lengths, budget=self.config.token_budget, long_rows=self.config.long_rows)
        return build_batch(ordered, rows=rows, micro_batches=bins, step=step, version=version)
