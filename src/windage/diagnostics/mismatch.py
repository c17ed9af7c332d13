"""How far two policies' log-probs lie apart: by lag and by position, never only as a mean."""

from __future__ import annotations

from torch import Tensor

from windage.diagnostics.outside import outside
from windage.diagnostics.quantiles import quantiles
from windage.segments import Segments

__all__ = ["mismatch"]

_SHARES = (0.5, 0.9, 0.99, 1.0)


def mismatch(
    *, log_ratio: Tensor, staleness: Tensor, segments: Segments, band: tuple[float, float] = (0.5, 2.0)
) -> dict[str, float]:
    """Quantiles of ``|log ρ|`` and the share outside ``band``: at lag 0, at lag > 0, and by quarter of the row.

    ``lag0`` is what engine and learner disagree about at equal weights; ``stale`` has the policies' difference in it.
    Parts without tokens are left out. The denominator of each share is its own part.
    """
    gap = log_ratio.abs()
    place = segments.position / segments.expand(segments.lengths.clamp(min=1))
    parts = {"lag0": staleness == 0, "stale": staleness > 0}
    parts |= {f"quarter{quarter + 1}": (place * 4).floor() == quarter for quarter in range(4)}
    found: dict[str, float] = {}
    for name, chosen in parts.items():
        part = gap[chosen]
        if not len(part):
            continue
        found |= {f"{name}_p{share * 100:g}": value for share, value in quantiles(part, _SHARES).items()}
        found[f"{name}_outside"] = sum(outside(log_ratio=log_ratio[chosen], band=band))
    return found
