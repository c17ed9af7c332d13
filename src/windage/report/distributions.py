"""Histograms of a run as heat maps: staleness of the rows, and whatever the learner reports bin by bin."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from windage.report.heatmap import Heatmap, draw_heatmap
from windage.report.plot import Plot
from windage.report.run_data import RunData
from windage.report.scale import short
from windage.report.sentences import SENTENCES

__all__ = ["learner_maps", "staleness_map"]

_PREFIX = "learner/histogram/"
_MOST_MAPS = 6


def staleness_map(run: RunData) -> Iterator[Plot]:
    """Share of each batch's rows by staleness."""
    if svg := _draw(run, "staleness/histogram", y_label="versions"):
        yield Plot("Staleness of the rows", SENTENCES["staleness_map"], svg)


def learner_maps(run: RunData) -> Iterator[Plot]:
    """Every histogram of the learner, at most six."""
    names = dict.fromkeys(name for line in run.curves.lines for name in line if name.startswith(_PREFIX))
    for name in list(names)[:_MOST_MAPS]:
        if svg := _draw(run, name, y_label="bin"):
            yield Plot(name.removeprefix(_PREFIX).replace("_", " "), SENTENCES["histogram"], svg)


def _draw(run: RunData, name: str, *, y_label: str) -> str:
    """The heat map without the empty bins at its top; nothing when there is no count at all."""
    x, edges, counts = run.curves.histograms(name)
    used = max((bin_ + 1 for row in counts for bin_, count in enumerate(row) if count > 0), default=0)
    if not used:
        return ""
    bins = [_bin(low, high) for low, high in pairwise(edges)][:used]
    shares = [[count / (sum(row) or 1.0) for count in row[:used]] for row in counts]
    height = max(14.0, min(44.0, 200.0 / used))
    return draw_heatmap(Heatmap(x=x, bins=bins, shares=shares, y_label=y_label, row_height=height))


def _bin(low: float, high: float) -> str:
    return short(low) if high - low <= 1 else f"{short(low)}–{short(high - 1)}"
