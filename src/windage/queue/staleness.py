"""The hard staleness bound: one number, derived from three knobs, asserted per group. Proof: docs/staleness.md."""

from __future__ import annotations

from dataclasses import dataclass

from windage.errors import ConfigError, StalenessError, explain

__all__ = ["StalenessBound"]


@dataclass(frozen=True, slots=True)
class StalenessBound:
    """``bound = S + ceil((W - 1) / P)`` published versions, for every group of every batch.

    ``wanted``           S >= 0, batches that admission may run ahead of the batch in training
    ``window``           W >= 1, look-ahead window in groups (1 = strict first-in-first-out)
    ``groups_per_step``  P >= 1, groups in a batch

    Raises :class:`~windage.errors.ConfigError` for a knob out of range. DERIVED (docs/staleness.md).

    >>> StalenessBound(2, 8, 8).bound
    3
    >>> StalenessBound(2, 1, 8).bound
    2
    """

    wanted: int
    window: int
    groups_per_step: int

    def __post_init__(self) -> None:
        for name, got, least in (
            ("staleness", self.wanted, 0),
            ("window", self.window, 1),
            ("groups_per_step", self.groups_per_step, 1),
        ):
            if got < least:
                raise ConfigError(explain(f"{name} is out of range", got=got, expected=f">= {least}"))

    @property
    def lookahead(self) -> int:
        """Versions that the window adds: a slow group may be overtaken by W - 1 others."""
        return -(-(self.window - 1) // self.groups_per_step)

    @property
    def bound(self) -> int:
        """Largest staleness a trained group can have, in published versions."""
        return self.wanted + self.lookahead

    def explain(self) -> str:
        """Which knob binds, and what to turn to lower the bound.

        >>> print(StalenessBound(2, 8, 8).explain())
        staleness <= 3 versions: 2 from staleness (S=2) + 1 from the window (W=8 over P=8); W=1 would give 2
        """
        parts = f"{self.wanted} from staleness (S={self.wanted})"
        if not self.lookahead:
            return f"staleness <= {self.bound} versions: {parts}; the window (W={self.window}) adds nothing"
        window = f"{self.lookahead} from the window (W={self.window} over P={self.groups_per_step})"
        return f"staleness <= {self.bound} versions: {parts} + {window}; W=1 would give {self.wanted}"

    @staticmethod
    def staleness(learner_version: int, row_version: int) -> int:
        """``learner_version - row_version``: the age of a row when it is trained, queue time included.

        >>> StalenessBound.staleness(5, 3)
        2

        Raises:
            StalenessError: the row has no version, or one that the learner has not published.
        """
        if row_version < 0:
            raise StalenessError(
                explain("a row without a policy version", got=row_version, expected="a version stamped per token")
            )
        if row_version > learner_version:
            raise StalenessError(
                explain(
                    "a row is newer than the learner",
                    got=f"row version {row_version}",
                    expected=f"<= {learner_version}",
                    do="versions run backwards: resume from the run's own checkpoint and store",
                )
            )
        return learner_version - row_version

    def check(self, group_id: str, *, oldest: int, version: int) -> int:
        """Staleness at learner ``version`` of a group whose oldest token was sampled at version ``oldest``.

        >>> StalenessBound(2, 1, 8).check("t7", oldest=3, version=5)
        2

        Raises:
            StalenessError: above the bound, without a version, or newer than the learner.
        """
        got = self.staleness(version, oldest)
        if got > self.bound:
            raise StalenessError(
                explain(
                    f"group {group_id} is too stale to train",
                    got=f"staleness {got} (sampled at version {oldest}, learner at {version})",
                    expected=f"<= {self.bound}",
                    do=self.explain(),
                )
            )
        return got
