"""The plots of the report: each with one sentence that says what to see in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from windage.report.chart import Chart, Line, draw
from windage.report.curves import Curves, smooth
from windage.report.distributions import learner_maps, staleness_map
from windage.report.plot import Plot
from windage.report.run_data import RunData
from windage.report.sentences import SENTENCES

__all__ = ["learning_chart", "plots_of", "staleness_chart"]

_STAGES = ("wait", "train", "barrier", "publish", "evaluate")


def plots_of(run: RunData) -> Iterator[Plot]:
    """Every plot that has data, in reading order."""
    for make in (_learning, _staleness, staleness_map, _ratios, _share_outside, _divergence, _mismatch, _trace_product):
        yield from make(run)
    for make in (learner_maps, _loss, _critic, _queue, _time, _speed):
        yield from make(run)


def learning_chart(run: RunData, *, width: float = 680.0, height: float = 270.0) -> Chart:
    """Reward and success of training batches, and held-out success with its 95 % interval."""
    curves = run.curves
    lines = [
        *_noisy(curves, "batch/reward", "reward (train)", 3),
        *_noisy(curves, "rollout/success", "success (train)", 1),
    ]
    scored = [line for line in run.evaluations if line.get("eval/success") is not None]
    if scored:
        lines.append(
            Line(
                name="success (held-out)",
                x=[float(line["step"]) for line in scored],
                y=[line["eval/success"] for line in scored],
                low=[line.get("eval/success_low", line["eval/success"]) for line in scored],
                high=[line.get("eval/success_high", line["eval/success"]) for line in scored],
                colour=2,
                style="points",
            )
        )
    return Chart(lines=tuple(lines), floor=1.0, width=width, height=height)


def staleness_chart(run: RunData, *, width: float = 680.0, height: float = 270.0) -> Chart:
    """Mean and largest staleness of each batch, and the hard bound."""
    curves = run.curves
    x = curves.x
    lines = [
        Line(name="largest", x=x, y=curves.largest("staleness/max"), colour=1),
        Line(name="mean", x=x, y=curves.mean("staleness/mean"), colour=3),
    ]
    if "staleness/bound" in curves:
        lines.append(Line(name="bound", x=x, y=curves.mean("staleness/bound"), colour=6, style="dashed"))
    return Chart(lines=tuple(lines), y_label="published versions", width=width, height=height, floor=1.0, whole=True)


def _learning(run: RunData) -> Iterator[Plot]:
    yield from _plot("Learning curve", SENTENCES["learning"], learning_chart(run))


def _staleness(run: RunData) -> Iterator[Plot]:
    yield from _plot("Staleness", SENTENCES["staleness"], staleness_chart(run))


def _ratios(run: RunData) -> Iterator[Plot]:
    chart = _simple(run, (("learner/ess", "effective sample size", 1), ("learner/ess_tokens", "tokens", 3)), floor=1.0)
    yield from _plot("Effective sample size", SENTENCES["ratios"], chart)


def _share_outside(run: RunData) -> Iterator[Plot]:
    names = (
        ("learner/masked_below", "masked below", 1),
        ("learner/masked_above", "masked above", 2),
        ("learner/clipped_below", "clipped below", 1),
        ("learner/clipped_above", "clipped above", 2),
        ("learner/kappa_at_low", "κ at its low end", 3),
        ("learner/kappa_at_high", "κ at its high end", 4),
        ("learner/ratio_below_half", "ratio < 1/2", 5),
        ("learner/ratio_above_two", "ratio > 2", 6),
    )
    chart = _simple(run, names, percent=True)
    yield from _plot("Tokens outside the interval", SENTENCES["share_outside"], chart)


def _divergence(run: RunData) -> Iterator[Plot]:
    names = (("learner/kl", "KL", 1), ("learner/kl_k1", "k1", 3), ("learner/kl_k2", "k2", 5))
    yield from _plot("KL divergence (nats per token)", SENTENCES["divergence"], _simple(run, names))


def _mismatch(run: RunData) -> Iterator[Plot]:
    names = (
        ("learner/mismatch_lag0_p50", "lag 0, median", 1),
        ("learner/mismatch_lag0_p99", "lag 0, 99 %", 3),
        ("learner/mismatch_stale_p50", "stale, median", 2),
        ("learner/mismatch_stale_p99", "stale, 99 %", 6),
    )
    yield from _plot("Engine against learner (nats per token)", SENTENCES["mismatch"], _simple(run, names))


def _trace_product(run: RunData) -> Iterator[Plot]:
    quantiles = (("p1", "1 %", 5), ("p10", "10 %", 3), ("p50", "median", 1), ("p90", "90 %", 2), ("p99", "99 %", 6))
    names = tuple((f"learner/log_trace_{name}", label, colour) for name, label, colour in quantiles)
    yield from _plot("Product of the trace weights", SENTENCES["trace_product"], _simple(run, names, y_label="nats"))


def _loss(run: RunData) -> Iterator[Plot]:
    names = (
        ("learner/loss", "policy loss", 1),
        ("learner/entropy", "entropy (nats)", 3),
        ("learner/grad_norm", "gradient norm", 2),
    )
    yield from _plot("Policy update", SENTENCES["loss"], _simple(run, names))


def _critic(run: RunData) -> Iterator[Plot]:
    names = (("learner/critic_loss", "critic loss", 2), ("learner/explained_variance", "explained variance", 1))
    yield from _plot("Critic", SENTENCES["critic"], _simple(run, names))


def _queue(run: RunData) -> Iterator[Plot]:
    chart = _simple(
        run, (("queue/waiting", "waiting", 1), ("queue/in_flight", "in flight", 2)), y_label="groups", whole=True
    )
    yield from _plot("Queue", SENTENCES["queue"], chart)


def _time(run: RunData) -> Iterator[Plot]:
    curves = run.curves
    base = [0.0] * len(curves.x)
    lines: list[Line] = []
    for index, stage in enumerate(_STAGES):
        if f"time/{stage}" not in curves:
            continue
        seconds = [value or 0.0 for value in curves.mean(f"time/{stage}")]
        top = [low + value for low, value in zip(base, seconds, strict=True)]
        if any(seconds):
            lines.append(Line(name=stage, x=curves.x, y=seconds, low=base, high=top, colour=index + 1, style="area"))
        base = top
    yield from _plot("Time per stage", SENTENCES["time"], Chart(lines=tuple(lines), y_label="s per batch"))


def _speed(run: RunData) -> Iterator[Plot]:
    names = (("speed/engine_tokens", "engine", 1), ("speed/learner_tokens", "learner", 2))
    yield from _plot("Tokens per second", SENTENCES["speed"], _simple(run, names, y_label="tokens/s"))


def _plot(title: str, sentence: str, chart: Chart) -> Iterator[Plot]:
    if not chart.empty:
        yield Plot(title, sentence, draw(chart))


def _simple(
    run: RunData,
    names: Sequence[tuple[str, str, int]],
    *,
    y_label: str = "",
    percent: bool = False,
    whole: bool = False,
    floor: float | None = None,
) -> Chart:
    curves = run.curves
    lines = tuple(
        Line(name=label, x=curves.x, y=curves.mean(name), colour=colour)
        for name, label, colour in names
        if name in curves
    )
    return Chart(lines=lines, y_label=y_label, percent=percent, whole=whole, floor=floor)


def _noisy(curves: Curves, name: str, label: str, colour: int) -> list[Line]:
    """A faint line of single batches under its moving mean."""
    if name not in curves:
        return []
    x, raw = curves.x, curves.mean(name)
    span = max(1, len(raw) // 20)
    mean = Line(name=label, x=x, y=smooth(raw, span=span), colour=colour)
    return [mean] if span == 1 else [Line(name=label, x=x, y=raw, colour=colour, style="faint", legend=False), mean]
