"""Pacing: the mode of a run, as the numbers that admission and the window need."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from windage.queue.staleness import StalenessBound

__all__ = ["Pacing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """How far generation may run ahead of training.

    ``groups_per_step``  P, groups in a batch
    ``staleness``        S, wanted staleness in batches
    ``window``           W, look-ahead window in groups; 1 is strict order
    ``barrier``          True: a publish waits until nothing is in flight, so that no group sees two versions

    Raises :class:`~windage.errors.ConfigError` for a number out of range.

    >>> Pacing.asynchronous(staleness=2, window=0, groups_per_step=8)
    Pacing(groups_per_step=8, staleness=2, window=8, barrier=False)
    >>> Pacing.sync(groups_per_step=8) == Pacing.asynchronous(staleness=0, window=4, groups_per_step=8)
    True
    """

    groups_per_step: int
    staleness: int
    window: int
    barrier: bool

    def __post_init__(self) -> None:
        StalenessBound(self.staleness, self.window, self.groups_per_step)  # raises

    @classmethod
    def sync(cls, *, groups_per_step: int) -> Pacing:
        """Generate, train, publish, repeat. The same as ``lagged(0)``."""
        return cls.lagged(0, groups_per_step=groups_per_step)

    @classmethod
    def lagged(cls, k: int, *, groups_per_step: int) -> Pacing:
        """Batch ``n`` is sampled entirely after ``max(0, n-k)`` completed batches: lag exactly ``k``."""
        return cls(groups_per_step=groups_per_step, staleness=k, window=1, barrier=True)

    @classmethod
    def asynchronous(cls, *, staleness: int, window: int, groups_per_step: int) -> Pacing:
        """Rollout and training side by side. ``window=0`` takes P.

        With ``staleness=0`` the pool never holds more than the next batch, so there is nothing to look ahead to:
        the window is 1, the bound is 0, and the numbers are those of ``sync``.
        """
        if staleness == 0:
            return cls.sync(groups_per_step=groups_per_step)
        return cls(
            groups_per_step=groups_per_step, staleness=staleness, window=window or groups_per_step, barrier=False
        )

    @property
    def ahead(self) -> int:
        """Groups that may be admitted beyond those of completed batches: ``(S+1)·P``."""
        return (self.staleness + 1) * self.groups_per_step

    @property
    def bound(self) -> StalenessBound:
        """The bound this pacing guarantees."""
        return StalenessBound(self.staleness, self.window, self.groups_per_step)

    def as_dict(self) -> dict[str, int]:
        """Plain numbers, as the store keeps them."""
        return {name: int(value) for name, value in asdict(self).items()}
