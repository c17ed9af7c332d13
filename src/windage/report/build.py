"""``report.html``: one self-contained page from the files of a run folder, finished or not."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from windage.report.plot import Plot
from windage.report.plots import plots_of
from windage.report.run_data import RunData, read_run
from windage.report.samples import sample_html
from windage.report.style import SCRIPT, STYLE
from windage.report.tables import ledger_table, metric_table, tiles
from windage.runtime.disk import write_atomically
from windage.runtime.run_folder import RunFolder

__all__ = ["build_report"]

_MOST_SAMPLES = 8


def build_report(run_dir: str | Path) -> Path:
    """Write ``report.html`` into the run folder and return its path. Reads nothing outside the folder.

    Raises:
        DataError: there is no run, or the disk is full.
    """
    folder = RunFolder(Path(run_dir))
    run = read_run(folder.path)
    write_atomically(folder.report, _page(run))
    return folder.report


def _page(run: RunData) -> str:
    title = escape(run.name)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{title} · Windage</title><style>{STYLE}</style></head><body><main>"
        f'<h1>{title}</h1><p class="sub">{escape(_subtitle(run))}</p>{tiles(run)}'
        f'<div class="plots">{"".join(map(_plot, plots_of(run)))}</div>'
        f'{"".join(_rest(run))}</main><div id="tip"></div><script>{SCRIPT}</script></body></html>'
    )


def _subtitle(run: RunData) -> str:
    model = run.setting("model", "path") or run.setting("model", "name")
    parts = [
        f"recipe {run.setting('name')}" if run.setting("name") else "",
        f"mode {run.setting('mode', 'name')}" if run.setting("mode") else "",
        f"algorithm {run.setting('algorithm', 'name')}" if run.setting("algorithm") else "",
        f"model {model}" if model else "",
        str(run.summary.get("machine", "")) if run.summary else "not finished yet",
    ]
    return " · ".join(part for part in parts if part)


def _plot(plot: Plot) -> str:
    return f"<section><h2>{escape(plot.title)}</h2><p>{escape(plot.sentence)}</p>{plot.svg}</section>"


def _rest(run: RunData) -> Iterator[str]:
    if run.ledger:
        yield f'<section class="wide"><h2>Ledger</h2>{ledger_table(run)}</section>'
    if run.samples:
        cards = "".join(sample_html(sample) for sample in run.samples[-_MOST_SAMPLES:])
        yield (
            '<section class="wide"><h2>Sample episodes</h2><p class="samples-head">Text the policy sampled is '
            "<mark>highlighted</mark>: only these tokens are trained. "
            "The rest is prompt, tool output and observation.</p>"
            f"{cards}</section>"
        )
    if run.curves.lines:
        yield f'<section class="wide"><details><summary>Every metric</summary>{metric_table(run)}</details></section>'
    yield (
        '<section class="wide"><details><summary>Resolved settings</summary>'
        f"<pre>{escape(run.config_text)}</pre></details></section>"
    )
