"""SourceShares: one dataset must not starve another without anybody noticing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

__all__ = ["SourceShares"]


@dataclass(slots=True)
class SourceShares:
    """Tasks by source: let in, trained, lost.

    >>> shares = SourceShares()
    >>> shares.admitted.update(["easy"] * 30 + ["slow"] * 30)
    >>> shares.trained.update(["easy"] * 28 + ["slow"] * 4)
    >>> shares.starved(minimum=0.5)
    ["source 'slow' is starved: 12% of 32 trained groups, but 50% of 60 admitted ones (0 lost)"]
    """

    admitted: Counter[str] = field(default_factory=Counter[str])
    trained: Counter[str] = field(default_factory=Counter[str])
    lost: Counter[str] = field(default_factory=Counter[str])

    def starved(self, *, minimum: float, after: int = 32) -> list[str]:
        """A sentence for each source whose share of the trained groups is below ``minimum`` x its admitted share.

        Nothing is said before ``after`` groups are trained: shares of few are noise.
        """
        trained, admitted = self.trained.total(), self.admitted.total()
        if len(self.admitted) < 2 or trained < after:
            return []
        return [
            f"source {source!r} is starved: {self.trained[source] / trained:.0%} of {trained} trained groups, "
            f"but {count / admitted:.0%} of {admitted} admitted ones ({self.lost[source]} lost)"
            for source, count in sorted(self.admitted.items())
            if self.trained[source] / trained < minimum * count / admitted
        ]
