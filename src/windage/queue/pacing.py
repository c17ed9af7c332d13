"""Pacing: the mode of a run, as the numbers that admission and the window need."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from windage.errors import ConfigError, explain
from windage.queue.staleness import StalenessBound

__all__ = ["Pacing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """How far generation may run ahead of training.

    ``groups_per_step``  P, groups in a batch
    ``staleness``        S, wanted staleness in batches
    ``window``           W, look-ahead window in groups; 1 is strict order
    ``barrier``          True: a publish waits until nothing is in flight, so that no group sees two versions
    ``ahead``            groups that may be admitted beyond the trained ones; ``(S+1)·P`` paces by staleness,
                         anything else is a free-running producer (which needs an ``expire`` policy)
    """

    groups_per_step: int
    staleness: int
    window: int
    barrier: bool
    ahead: int

    def __post_init__(self) -> None:
        if self.ahead < self.groups_per_step:
            raise ConfigError(
                explain(
                    "the pool cannot hold one batch",
                    got=f"{self.ahead} groups",
                    expected=f">= groups_per_step = {self.groups_per_step}",
                )
            )

    @classmethod
    def sync(cls, *, groups_per_step: int) -> Pacing:
        """Generate, train, publish, repeat. The same as ``lagged(0)``."""
        return cls.lagged(0, groups_per_step=groups_per_step)

    @classmethod
    def lagged(cls, k: int, *, groups_per_step: int) -> Pacing:
        """Batch ``n`` is sampled entirely after ``max(0, n-k)`` completed batches: lag exactly ``k``."""
        bound = StalenessBound(k, 1, groups_per_step)
        return cls(
            groups_per_step=bound.groups_per_step,
            staleness=bound.wanted,
            window=1,
            barrier=True,
            ahead=(k + 1) * groups_per_step,
        )

    @classmethod
    def asynchronous(cls, *, staleness: int, window: int, groups_per_step: int) -> Pacing:
        """Rollout and training side by side. ``window=0`` takes P.

        With ``staleness=0`` the pool never holds more than the next batch, so there is nothing to look ahead to:
        the window is 1, the bound is 0, and the numbers are those of ``sync``.
        """
        width = 1 if staleness == 0 else window or groups_per_step
        bound = StalenessBound(staleness, width, groups_per_step)
        return cls(
            groups_per_step=bound.groups_per_step,
            staleness=bound.wanted,
            window=bound.window,
            barrier=staleness == 0,
            ahead=(staleness + 1) * groups_per_step,
        )

    @classmethod
    def free(cls, *, staleness: int, window: int, groups_per_step: int, pool: int) -> Pacing:
        """Producers that do not wait for the learner: up to ``pool`` untrained groups, and an ``expire`` policy.

        The bound is then ``staleness`` itself, because an older group expires before it can be chosen.
        """
        bound = StalenessBound(staleness, window or groups_per_step, groups_per_step)
        return cls(
            groups_per_step=bound.groups_per_step,
            staleness=bound.wanted,
            window=bound.window,
            barrier=False,
            ahead=pool,
        )

    @property
    def paced(self) -> bool:
        """True when admission alone keeps the bound; False for a free-running producer."""
        return self.ahead == (self.staleness + 1) * self.groups_per_step

    @property
    def bound(self) -> StalenessBound:
        """The bound this pacing guarantees."""
        return StalenessBound(self.staleness, self.window if self.paced else 1, self.groups_per_step)

    def as_dict(self) -> dict[str, int]:
        """Plain numbers, as the store keeps them."""
        return {name: int(value) for name, value in asdict(self).items()}
