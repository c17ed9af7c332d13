"""Tables and tiles of the report."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from windage.report.run_data import RunData
from windage.report.scale import short
from windage.runtime.catalogue import describe

__all__ = ["ledger_table", "metric_table", "tiles"]

_MEANING = {
    "trained": "in a batch that was completed",
    "waiting": "finished, not in a batch yet",
    "in_flight": "in rollout",
    "failed": "given up after retries, with a reason",
    "expired": "too old to be trained",
    "rejected": "refused at the door",
}


def tiles(run: RunData) -> str:
    """The run in a few large numbers."""
    boxes = "".join(f'<div class="tile"><b>{value}</b><span>{label}</span></div>' for label, value in _facts(run))
    return f'<div class="tiles">{boxes}</div>' if boxes else ""


def _facts(run: RunData) -> Iterator[tuple[str, str]]:
    """Label and text of each tile; of an unfinished run, what is known so far."""
    curves, summary = run.curves, run.summary or {}
    before, after = _evaluations(run)
    if before is not None and after is not None:
        yield "held-out success", f"{100 * before:.1f} → {100 * after:.1f} %"
    if curves.lines:
        steps = run.setting("steps")
        done = int(curves.lines[-1]["step"]) + 1
        yield "batches", f"{done} / {steps}" if steps and steps != done else str(done)
    largest = max((value for value in curves.largest("staleness/max") if value is not None), default=None)
    bound = curves.last("staleness/bound")
    if largest is not None:
        yield "largest staleness / bound", f"{largest:.0f}" + (f" / {bound:.0f}" if bound is not None else "")
    for label, key, column in (
        ("tokens generated", "tokens_generated", "tokens/generated"),
        ("tokens trained", "tokens_trained", "tokens/trained"),
    ):
        value = summary.get(key, curves.last(column))
        if value is not None:
            yield label, short(float(value))
    if curves.lines:
        seconds = summary.get("seconds", math.fsum(line.get("time/step") or 0.0 for line in curves.lines))
        yield "wall clock", _duration(float(seconds))


def _evaluations(run: RunData) -> tuple[float | None, float | None]:
    scored = [line["eval/success"] for line in run.evaluations if line.get("eval/success") is not None]
    first, last = (scored[0], scored[-1]) if scored else (None, None)
    summary = run.summary or {}
    return summary.get("eval_before", first), summary.get("eval_after", last)


def ledger_table(run: RunData) -> str:
    """Where every admitted task ended, and whether the counts close."""
    ledger = run.ledger
    admitted = ledger.get("admitted", 0.0)
    ends = {name: ledger[name] for name in _MEANING if name in ledger}
    rows = "".join(
        f'<tr><td>{name.replace("_", " ")}</td><td class="n">{count:,.0f}</td><td>{_MEANING[name]}</td></tr>'
        for name, count in ends.items()
    )
    total = sum(ends.values())
    closes = "the ledger closes" if total == admitted else f"the ledger does not close: {total:,.0f} accounted for"
    kind = "good" if total == admitted else "poor"
    return (
        "<p>Every admitted task ends in exactly one line.</p><table><tr><th>groups</th><th>count</th><th></th></tr>"
        f'{rows}<tr><td><b>admitted</b></td><td class="n"><b>{admitted:,.0f}</b></td>'
        f'<td class="{kind}">{closes}</td></tr></table>'
    )


def metric_table(run: RunData) -> str:
    """Every number of the last step with its unit, denominator and meaning from the catalogue."""
    names = dict.fromkeys(name for line in run.curves.lines for name in line)
    rows: list[str] = []
    for name in names:
        entry, value = describe(name), run.curves.last(name)
        if value is None or entry is None:
            continue
        cells = (entry.unit, f"per {entry.per}" if entry.per else "", entry.meaning)
        rows.append(
            f'<tr><td>{escape(name)}</td><td class="n">{short(value)}</td>'
            + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
            + "</tr>"
        )
    head = "<tr><th>metric</th><th>last</th><th>unit</th><th>denominator</th><th>meaning</th></tr>"
    return f'<div class="scroll"><table>{head}{"".join(rows)}</table></div>'


def _duration(seconds: float) -> str:
    """Hours, minutes, seconds.

    >>> _duration(3725), _duration(95)
    ('1 h 2 min', '1 min 35 s')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"
