"""Assembler: which of the waiting groups make the next batch, and how their rows are packed. Synchronous."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from windage.records import TrainBatch, TrajectoryGroup

__all__ = ["Assembler", "Choices"]


class Choices(Protocol):
    """The pool as an assembler sees it: what the look-ahead window allows, pick by pick.

    The window's anchor moves with every pick, so ask again after each. Any order of picks reaches the same number.
    """

    def eligible(self) -> Sequence[TrajectoryGroup]:
        """Groups that may be picked next, oldest first; empty when nothing more can be picked now."""
        ...

    def reachable(self, count: int) -> Sequence[TrajectoryGroup]:
        """Up to ``count`` groups that can be picked one after another in this order: the oldest ones."""
        ...

    def pick(self, group: TrajectoryGroup) -> None:
        """Pick one of the eligible groups for the batch."""
        ...


class Assembler(Protocol):
    """Chooses and packs. Both methods must be pure functions of their arguments (and of what was chosen before)."""

    def choose(self, choices: Choices, count: int) -> None:
        """Pick ``count`` groups; called only when that many can be reached."""
        ...

    def build(self, groups: Sequence[TrajectoryGroup], *, step: int, version: int) -> TrainBatch:
        """The batch of the chosen groups: rows in order, dropped rows left out, packed under the token budget."""
        ...
