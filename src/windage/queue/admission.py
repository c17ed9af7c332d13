"""Admission: who may start, and when the version may move. Three counters and one inequality."""

from __future__ import annotations

from dataclasses import dataclass

from windage.errors import RunStopped, StalenessError, explain
from windage.queue.pacing import Pacing

__all__ = ["Admission"]


@dataclass(slots=True, kw_only=True)
class Admission:
    """``admit while admitted - retired < completed·P + (S+1)·P``.

    ``admitted``   groups let in so far: the next position
    ``retired``    of those, given up (failed, expired, rejected): their slots are refilled
    ``completed``  batches whose publish, skip or critic-only update is *over*: a slot is freed by nothing earlier
    ``steps``      batches of the run; no group is let in that no batch will need. None: without end
    ``ended``      no more tasks will come

    The counters are all there is: rebuilt from the store they give the capacity that an uninterrupted run would have.
    """

    pacing: Pacing
    steps: int | None = None
    admitted: int = 0
    retired: int = 0
    completed: int = 0
    ended: bool = False

    def capacity(self) -> int:
        """Groups that may start now.

        >>> door = Admission(pacing=Pacing.asynchronous(staleness=1, window=4, groups_per_step=4))
        >>> door.capacity(), [door.admit() for _ in range(8)][-1], door.capacity()
        (8, 7, 0)
        >>> door.complete(0)
        >>> door.capacity()
        4
        """
        if self.ended:
            return 0
        size = self.pacing.groups_per_step
        limit = self.completed * size + self.pacing.ahead
        if self.steps is not None:
            limit = min(limit, self.steps * size)
        return max(0, limit - (self.admitted - self.retired))

    def admit(self) -> int:
        """Let one group in; its position.

        Raises:
            RunStopped: there is no capacity; the caller must wait for a completed batch or a retired group.
        """
        if self.capacity() < 1:
            raise RunStopped(
                explain(
                    "a task was admitted without a free slot",
                    got=f"{self.admitted} admitted, {self.retired} retired, {self.completed} batches completed",
                    expected="capacity() >= 1",
                    do="wait until a batch is completed (after its publish) or a group is retired",
                )
            )
        self.admitted += 1
        return self.admitted - 1

    def complete(self, step: int) -> None:
        """Batch ``step`` is over: P slots are free.

        Raises:
            StalenessError: batches are completed out of order.
        """
        if step != self.completed:
            raise StalenessError(explain("batches complete out of order", got=step, expected=self.completed))
        self.completed += 1

    def retire(self) -> None:
        """One admitted group was given up: its slot is free at once, at the same version."""
        self.retired += 1

    def end(self) -> None:
        """No more tasks will come."""
        self.ended = True

    def may_publish(self, in_flight: int) -> bool:
        """With a barrier: only when nothing is in flight and every hole has been refilled; otherwise always."""
        return not self.pacing.barrier or (in_flight == 0 and self.capacity() == 0)
