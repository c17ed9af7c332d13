"""Window: which waiting groups may be chosen next. Anchored, so that nobody is overtaken for ever."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Mapping
from copy import copy

from windage.records import TrajectoryGroup

__all__ = ["Window"]


class Window:
    """The first ``width`` *live* positions, counted from the anchor: the oldest live position without a batch.

    Live = admitted and not given up. Positions that already have a batch count as well, or the window would slide past
    a slow group without end (the mutation "unanchored window"). The anchor moves with every pick.

    ``pool``  waiting groups by position, without a batch; the queue owns it

    >>> window = Window(width=2, pool={})
    >>> for position in (0, 1, 2):
    ...     window.admit(position)
    >>> window.take(1); window.anchor
    0
    >>> window.take(0); window.anchor
    2
    """

    def __init__(self, *, width: int, pool: Mapping[int, TrajectoryGroup]) -> None:
        self.width = width
        self.pool = pool
        self._live: list[int] = []  # sorted; begins at the anchor
        self._taken: set[int] = set()  # live positions beyond the anchor that have a batch

    @property
    def anchor(self) -> int | None:
        """The oldest live position without a batch; None when there is none."""
        return self._live[0] if self._live else None

    def admit(self, position: int) -> None:
        """A group was let in."""
        insort(self._live, position)

    def retire(self, position: int) -> None:
        """A group was given up: it no longer counts, and the window reaches one further."""
        del self._live[bisect_left(self._live, position)]
        self._move_anchor()

    def take(self, position: int) -> None:
        """A group was given a batch."""
        self._taken.add(position)
        self._move_anchor()

    def allows(self, position: int) -> bool:
        """True when the group waits inside the window: it may be picked next."""
        return position in self.pool and position not in self._taken and self.reaches(position)

    def eligible(self) -> list[TrajectoryGroup]:
        """Waiting groups inside the window, oldest first: any of them may be picked next."""
        return [self.pool[p] for p in self._live[: self.width] if p not in self._taken and p in self.pool]

    def reachable(self, count: int) -> list[TrajectoryGroup]:
        """Up to ``count`` groups that can be picked one after another, oldest first.

        Their number does not depend on the order of the picks: a pick only ever moves the anchor forward.
        """
        picks: list[TrajectoryGroup] = []
        blocked: int | None = None  # index of the oldest group still in flight: there the anchor stops
        for index, position in enumerate(self._live):
            if len(picks) == count or (blocked is not None and index >= blocked + self.width):
                break
            if position in self._taken:
                continue
            if position in self.pool:
                picks.append(self.pool[position])
            elif blocked is None:
                blocked = index
        return picks

    def reaches(self, position: int) -> bool:
        """True for a live position that is one of the first ``width``."""
        index = bisect_left(self._live, position)
        return index < min(self.width, len(self._live)) and self._live[index] == position

    def copy(self) -> Window:
        """An independent window over the same pool, to try picks on."""
        twin = copy(self)
        twin._live, twin._taken = self._live.copy(), self._taken.copy()  # noqa: SLF001 - of the same class
        return twin

    def _move_anchor(self) -> None:
        passed = 0
        while passed < len(self._live) and self._live[passed] in self._taken:
            self._taken.remove(self._live[passed])
            passed += 1
        del self._live[:passed]
