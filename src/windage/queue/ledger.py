"""Ledger: every admitted task is in exactly one place, and every sampled token too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from windage.errors import StalenessError, explain
from windage.records import Failure, TrajectoryGroup

__all__ = ["Ledger", "Loss"]

Loss = Literal["failed", "expired", "rejected"]
"""How a task can end without being trained; each end has a reason beside it."""


@dataclass(slots=True)
class Ledger:
    """``admitted = trained + waiting + in_flight + failed(reason) + expired(reason) + rejected(reason)`` in tasks.

    The same in tokens: ``sampled_tokens = trained + waiting + lost(reason)``; a task in flight has reported none yet.
    A task *waits* until the batch it belongs to is completed. The identity holds after every method.

    >>> ledger = Ledger()
    >>> ledger.admit(2); ledger.finish(tokens=10); ledger.train(tokens=10); ledger.lose("failed", "engine")
    >>> ledger.counts()
    {'admitted': 2, 'trained': 1, 'waiting': 0, 'in_flight': 0, 'failed': 1, 'expired': 0, 'rejected': 0}
    """

    admitted: int = 0
    trained: int = 0
    waiting: int = 0
    in_flight: int = 0
    lost: dict[Loss, Counter[str]] = field(
        default_factory=lambda: {"failed": Counter(), "expired": Counter(), "rejected": Counter()}
    )
    sampled_tokens: int = 0
    trained_tokens: int = 0
    waiting_tokens: int = 0
    lost_tokens: Counter[str] = field(default_factory=Counter[str])

    @property
    def failed(self) -> int:
        """Tasks given up because their episodes failed."""
        return self.lost["failed"].total()

    @property
    def expired(self) -> int:
        """Tasks that grew too old to be trained."""
        return self.lost["expired"].total()

    @property
    def rejected(self) -> int:
        """Tasks refused: nothing to train on, a skipped batch, or a dropped tail."""
        return self.lost["rejected"].total()

    def admit(self, tasks: int = 1) -> None:
        """Tasks were let in."""
        self.admitted += tasks
        self.in_flight += tasks

    def finish(self, *, tokens: int) -> None:
        """A task came back with a group worth training."""
        self.in_flight -= 1
        self.waiting += 1
        self.sampled_tokens += tokens
        self.waiting_tokens += tokens
        self.check()

    def waste(self, reason: str, tokens: int) -> None:
        """Sampled tokens that will not be trained, while their task lives on (failed members, a retried attempt)."""
        self.sampled_tokens += tokens
        self._lose_tokens(reason, tokens)
        self.check()

    def train(self, *, tokens: int) -> None:
        """A waiting task's batch was completed."""
        self.waiting -= 1
        self.trained += 1
        self.waiting_tokens -= tokens
        self.trained_tokens += tokens
        self.check()

    def lose(self, loss: Loss, reason: str, *, waiting_tokens: int | None = None) -> None:
        """A task ends untrained: from flight, or (with ``waiting_tokens``) from among the waiting ones."""
        if waiting_tokens is None:
            self.in_flight -= 1
        else:
            self.waiting -= 1
            self.waiting_tokens -= waiting_tokens
            self._lose_tokens(reason, waiting_tokens)
        self.lost[loss][reason] += 1
        self.check()

    def waste_members(self, failures: Iterable[Failure]) -> None:
        """The tokens of failed siblings."""
        for failure in failures:
            self.waste(failure.reason, failure.tokens)

    def waste_attempt(self, group: TrajectoryGroup, reason: str) -> None:
        """All tokens of an attempt that is thrown away, survivors included."""
        self.waste_members(group.failures)
        self.waste(reason, group.action_tokens)

    def counts(self) -> dict[str, int]:
        """The identity's terms, in tasks."""
        return {
            "admitted": self.admitted,
            "trained": self.trained,
            "waiting": self.waiting,
            "in_flight": self.in_flight,
            "failed": self.failed,
            "expired": self.expired,
            "rejected": self.rejected,
        }

    def reasons(self) -> dict[str, dict[str, int]]:
        """Lost tasks by kind and reason; kinds without any are left out."""
        return {loss: dict(counts) for loss, counts in self.lost.items() if counts}

    def tokens(self) -> dict[str, int]:
        """The identity's terms, in sampled tokens."""
        return {
            "sampled": self.sampled_tokens,
            "trained": self.trained_tokens,
            "waiting": self.waiting_tokens,
            "lost": self.lost_tokens.total(),
        }

    def check(self) -> None:
        """Assert both identities.

        Raises:
            StalenessError: something vanished, or was counted twice.
        """
        counts = self.counts()
        tokens = self.tokens()
        if 2 * self.admitted != sum(counts.values()) or min(counts.values()) < 0:
            raise StalenessError(
                explain("the ledger does not close", got=counts, expected="admitted = sum of the rest")
            )
        if 2 * self.sampled_tokens != sum(tokens.values()) or min(tokens.values()) < 0:
            raise StalenessError(
                explain("the token ledger does not close", got=tokens, expected="sampled = sum of the rest")
            )

    def _lose_tokens(self, reason: str, tokens: int) -> None:
        if tokens:
            self.lost_tokens[reason] += tokens
