"""Picks: the pool as an assembler sees it. What it picks is checked against the window, not trusted."""

from __future__ import annotations

from collections.abc import Sequence

from windage.errors import StalenessError, explain
from windage.queue.window import Window
from windage.records import TrajectoryGroup

__all__ = ["Picks"]


class Picks:
    """Tries picks on a copy of the window (:class:`windage.assembly.protocol.Choices`)."""

    def __init__(self, window: Window) -> None:
        self._window = window.copy()
        self.groups: list[TrajectoryGroup] = []

    def eligible(self) -> Sequence[TrajectoryGroup]:
        """Groups that may be picked next, oldest first."""
        return self._window.eligible()

    def reachable(self, count: int) -> Sequence[TrajectoryGroup]:
        """Up to ``count`` groups that can be picked one after another in this order: the oldest ones."""
        return self._window.reachable(count)

    def pick(self, group: TrajectoryGroup) -> None:
        """Pick one of the eligible groups.

        Raises:
            StalenessError: the group is not waiting inside the window.
        """
        if not self._window.allows(group.position):
            raise StalenessError(
                explain(
                    f"group {group.group_id} was picked outside the look-ahead window",
                    got=f"position {group.position}",
                    expected=f"a waiting group among the first {self._window.width} from {self._window.anchor}",
                    do="an assembler picks from choices.eligible(), and asks again after each pick",
                )
            )
        self._window.take(group.position)
        self.groups.append(group)
