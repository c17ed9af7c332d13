"""FailureStreak: when everything fails, back off, and then stop with the reasons instead of burning the data."""

from __future__ import annotations

from collections import Counter

from windage.errors import RunStopped, explain
from windage.queue.queue import Accepted, Retired, Retry
from windage.records import TrajectoryGroup

__all__ = ["FailureStreak"]


class FailureStreak:
    """Counts groups that failed in a row (retried or retired); one accepted group ends the streak.

    ``limit`` groups in a row stop the run; before that each failure waits ``first_pause`` seconds, doubling up to
    ``longest_pause``, so that a dead service is not hammered.
    """

    def __init__(self, *, limit: int, first_pause: float = 0.5, longest_pause: float = 30.0) -> None:
        self.limit = limit
        self.length = 0
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._reasons: Counter[str] = Counter()
        self._detail = ""

    def record(self, group: TrajectoryGroup, outcome: Accepted | Retry | Retired) -> float:
        """Seconds to wait before trying again.

        Raises:
            RunStopped: ``limit`` groups failed in a row; counts by reason and the last detail are in the message.
        """
        if isinstance(outcome, Accepted):
            self.length = 0
            self._reasons.clear()
            return 0.0
        self.length += 1
        self._reasons.update(failure.reason for failure in group.failures)
        self._detail = next((f.detail for f in reversed(group.failures) if f.detail), self._detail)
        if self.length >= self.limit:
            counts = ", ".join(f"{reason} x {count}" for reason, count in self._reasons.most_common())
            raise RunStopped(
                explain(
                    f"{self.length} groups in a row gave nothing to train on",
                    got=counts,
                    expected="at least one finished episode",
                    do=f"last failure: {self._detail or 'no detail'}",
                )
            )
        return min(self._first_pause * 2.0 ** (self.length - 1), self._longest_pause)
