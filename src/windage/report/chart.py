"""Line charts as SVG, written by hand: no library, no script needed to read them, colours from the page's variables."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from windage.report.scale import Scale, fit, short, ticks

__all__ = ["Chart", "Line", "draw"]

Style = Literal["line", "faint", "dashed", "points", "area"]
_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 14.0, 34.0, 36.0
_CHARACTER = 6.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One series. ``low``/``high``: error bars for points, borders for an area, a band around a line."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    colour: int = 1
    style: Style = "line"
    low: Sequence[float | None] = ()
    high: Sequence[float | None] = ()
    legend: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One plot: its lines and its axes. ``zero`` keeps zero in view; ``floor`` is a value the axis must
    reach; ``whole`` marks only whole numbers.
    """

    lines: tuple[Line, ...]
    x_label: str = "batches"
    y_label: str = ""
    percent: bool = False
    whole: bool = False
    zero: bool = True
    floor: float | None = None
    width: float = 680.0
    height: float = 270.0

    @property
    def empty(self) -> bool:
        """True when no line has a number."""
        return all(value is None or not math.isfinite(value) for line in self.lines for value in line.y)


def draw(chart: Chart) -> str:
    """The chart as an ``<svg>`` element; its numbers lie beside it as JSON for the page's tooltip."""
    right = chart.width - _RIGHT
    bottom = chart.height - _BOTTOM
    x_low, x_high = _x_range(chart)
    y_low, y_high = fit(_heights(chart), zero=chart.zero, floor=chart.floor)
    x, y = Scale(x_low, x_high, _LEFT, right), Scale(y_low, y_high, bottom, _TOP)
    parts = [*_grid(chart, x, y), *_legend(chart)]
    for style in ("area", "faint", "line", "dashed", "points"):
        for line in chart.lines:
            if line.style == style:
                parts.extend(_series(line, x, y))
    data = escape(json.dumps(_data(chart, x)), quote=True)
    return (
        f'<svg class="chart" viewBox="0 0 {chart.width:g} {chart.height:g}" role="img" data-chart="{data}" '
        f'data-top="{_TOP:g}" data-bottom="{bottom:g}">{"".join(parts)}</svg>'
    )


def _x_range(chart: Chart) -> tuple[float, float]:
    values = [value for line in chart.lines for value in line.x]
    low, high = min(values, default=0.0), max(values, default=1.0)
    low = min(low, 0.0)
    return (low, high) if high > low else (low - 0.5, low + 0.5)


def _heights(chart: Chart) -> Iterator[float | None]:
    for line in chart.lines:
        yield from line.y
        yield from line.low
        yield from line.high


def _grid(chart: Chart, x: Scale, y: Scale) -> Iterator[str]:
    for value in ticks(y.low, y.high):
        if chart.whole and value != int(value):
            continue
        at = y(value)
        yield f'<line class="grid" x1="{x.start:g}" x2="{x.stop:g}" y1="{at:.1f}" y2="{at:.1f}"/>'
        text = short(value, percent=chart.percent)
        yield f'<text class="tick" x="{x.start - 6:g}" y="{at + 3.5:.1f}" text-anchor="end">{text}</text>'
    for value in ticks(x.low, x.high, about=8):
        at = f"{x(value):.1f}"
        yield f'<text class="tick" x="{at}" y="{y.start + 15:g}" text-anchor="middle">{short(value)}</text>'
    yield f'<line class="axis" x1="{x.start:g}" x2="{x.stop:g}" y1="{y.start:g}" y2="{y.start:g}"/>'
    yield f'<text class="label" x="{x.stop:g}" y="{y.start + 30:g}" text-anchor="end">{escape(chart.x_label)}</text>'
    if chart.y_label:
        yield f'<text class="label" x="4" y="{y.stop - 10:g}">{escape(chart.y_label)}</text>'


def _legend(chart: Chart) -> Iterator[str]:
    """Names with their swatches, right-aligned above the plot."""
    shown = [line for line in chart.lines if line.legend]
    at = chart.width - _RIGHT - sum(len(line.name) * _CHARACTER + 32 for line in shown) + 10
    for line in shown:
        dash = ' stroke-dasharray="4 3"' if line.style == "dashed" else ""
        if line.style in {"line", "dashed", "faint"}:
            yield f'<line class="s{line.colour}" x1="{at:.1f}" x2="{at + 14:.1f}" y1="14" y2="14"{dash}/>'
        else:
            yield f'<rect class="f{line.colour}" x="{at + 3:.1f}" y="9.5" width="9" height="9" rx="2"/>'
        yield f'<text class="legend" x="{at + 18:.1f}" y="17.5">{escape(line.name)}</text>'
        at += len(line.name) * _CHARACTER + 32


def _series(line: Line, x: Scale, y: Scale) -> Iterator[str]:
    if line.style == "area":
        yield f'<path class="f{line.colour} area" d="{_outline(line, x, y)}"/>'
        return
    if line.style == "points":
        yield from _points(line, x, y)
        return
    if line.low:
        yield f'<path class="f{line.colour} band" d="{_outline(line, x, y)}"/>'
    extra = {"faint": " faint", "dashed": " dashed"}.get(line.style, "")
    for piece in _pieces(line.x, line.y):
        path = "M" + "L".join(f"{x(a):.1f},{y(b):.1f}" for a, b in piece)
        yield f'<path class="s{line.colour}{extra}" d="{path}"/>'


def _points(line: Line, x: Scale, y: Scale) -> Iterator[str]:
    lows, highs = line.low or line.y, line.high or line.y
    for a, b, low, high in zip(line.x, line.y, lows, highs, strict=True):
        if b is None or low is None or high is None:
            continue
        at = f"{x(a):.1f}"
        yield f'<line class="s{line.colour} thin" x1="{at}" x2="{at}" y1="{y(low):.1f}" y2="{y(high):.1f}"/>'
        yield f'<circle class="f{line.colour}" cx="{at}" cy="{y(b):.1f}" r="4"/>'


def _outline(line: Line, x: Scale, y: Scale) -> str:
    """Closed path between ``low`` and ``high``."""
    there: list[str] = []
    back: list[str] = []
    for a, low, high in zip(line.x, line.low, line.high, strict=True):
        if low is not None and high is not None:
            there.append(f"{x(a):.1f},{y(high):.1f}")
            back.append(f"{x(a):.1f},{y(low):.1f}")
    return "M" + "L".join([*there, *reversed(back)]) + "Z" if there else ""


def _pieces(xs: Sequence[float], ys: Sequence[float | None]) -> Iterator[list[tuple[float, float]]]:
    """Runs of points without a gap."""
    piece: list[tuple[float, float]] = []
    for a, b in zip(xs, ys, strict=True):
        if b is not None and math.isfinite(b):
            piece.append((a, b))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def _data(chart: Chart, x: Scale) -> dict[str, object]:
    """What the tooltip needs: for each series its name, colour, and (pixel, x, text) triples."""
    series: list[dict[str, object]] = []
    for line in chart.lines:
        if line.style == "faint":
            continue
        points = [
            [round(x(a), 1), short(a), short(b, percent=chart.percent)]
            for a, b in zip(line.x, line.y, strict=True)
            if b is not None and math.isfinite(b)
        ]
        series.append({"name": line.name, "colour": line.colour, "points": points})
    return {"x": chart.x_label, "series": series}
