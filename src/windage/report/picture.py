"""A standalone SVG of one run, for a README: learning curve above, staleness below; light and dark."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from windage.report.chart import draw
from windage.report.plots import learning_chart, staleness_chart
from windage.report.run_data import read_run
from windage.report.style import CHART_STYLE
from windage.runtime.disk import write_atomically

__all__ = ["build_picture"]

_WIDTH, _TOP, _LEARNING, _STALENESS = 780.0, 30.0, 280.0, 190.0


def build_picture(run_dir: str | Path, out: str | Path, *, title: str = "") -> Path:
    """Write the picture of a run to ``out`` (``.svg``) and return the path.

    Raises:
        DataError: there is no run, or the disk is full.
    """
    run = read_run(run_dir)
    learning = _inner(draw(learning_chart(run, width=_WIDTH, height=_LEARNING)))
    staleness = _inner(draw(staleness_chart(run, width=_WIDTH, height=_STALENESS)))
    height = _TOP + _LEARNING + _STALENESS
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" width="{_WIDTH:g}" '
        f'role="img"><style>{CHART_STYLE} .title{{font-size:14px;font-weight:600;fill:var(--ink)}}</style>'
        f'<rect width="100%" height="100%" rx="10" style="fill:var(--card)"/>'
        f'<text class="title" x="14" y="24">{escape(title or run.name)}</text>'
        f'<g transform="translate(0 {_TOP:g})">{learning}</g>'
        f'<g transform="translate(0 {_TOP + _LEARNING:g})">{staleness}</g></svg>\n'
    )
    path = Path(out)
    write_atomically(path, svg)
    return path


def _inner(svg: str) -> str:
    """What stands inside the outer ``<svg>`` element."""
    return re.sub(r"^<svg[^>]*>|</svg>$", "", svg)
