"""Histograms over time as a heat map in SVG: one column a step, one row a bin, darker where more rows lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from windage.report.scale import Scale, short, ticks

__all__ = ["Heatmap", "draw_heatmap"]

_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 14.0, 26.0, 36.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heatmap:
    """``shares[i][j]``: share of column ``i`` (at ``x[i]``) in the bin named ``bins[j]``."""

    x: Sequence[float]
    bins: Sequence[str]
    shares: Sequence[Sequence[float]]
    x_label: str = "batches"
    y_label: str = ""
    width: float = 680.0
    row_height: float = 18.0


def draw_heatmap(heat: Heatmap) -> str:
    """The heat map as an ``<svg>`` element."""
    height = _TOP + _BOTTOM + heat.row_height * len(heat.bins)
    bottom = height - _BOTTOM
    across = Scale(min(heat.x) - 0.5, max(heat.x) + 0.5, _LEFT, heat.width - _RIGHT)
    wide = (heat.width - _RIGHT - _LEFT) / max(len(heat.x), 1)
    parts = [f'<text class="label" x="4" y="16">{escape(heat.y_label)}</text>']
    for row, name in enumerate(heat.bins):
        at = bottom - (row + 0.5) * heat.row_height
        parts.append(f'<text class="tick" x="{_LEFT - 6:g}" y="{at + 3.5:.1f}" text-anchor="end">{escape(name)}</text>')
    for column, (place, shares) in enumerate(zip(heat.x, heat.shares, strict=True)):
        for row, share in enumerate(shares):
            if share > 0:
                parts.append(
                    f'<rect class="f1" fill-opacity="{0.12 + 0.88 * share:.2f}" x="{_LEFT + column * wide:.2f}" '
                    f'y="{bottom - (row + 1) * heat.row_height:.1f}" width="{wide + 0.1:.2f}" '
                    f'height="{heat.row_height - 1:g}"><title>{escape(heat.x_label)} {short(place)}, '
                    f"{escape(heat.bins[row])}: {short(share, percent=True)}</title></rect>"
                )
    parts.extend(
        f'<text class="tick" x="{across(value):.1f}" y="{bottom + 15:g}" text-anchor="middle">{short(value)}</text>'
        for value in ticks(across.low, across.high, about=8)
    )
    right = heat.width - _RIGHT
    parts.append(f'<text class="label" x="{right:g}" y="{bottom + 30:g}" text-anchor="end">{heat.x_label}</text>')
    return f'<svg class="heat" viewBox="0 0 {heat.width:g} {height:g}" role="img">{"".join(parts)}</svg>'
