"""The one catalogue of metrics: name, kind, unit, denominator, meaning, and where it is shown.

Names are ``family/name``. A name that ends in ``*`` declares a family whose members are open (an environment's own
numbers). ``docs/metrics`` in the report and the sinks read their titles from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from windage.runtime.metrics import Histogram, Last, Max, Mean, Sum, Value

__all__ = ["CATALOGUE", "STALENESS_EDGES", "Metric", "describe"]

STALENESS_EDGES: tuple[float, ...] = (*map(float, range(17)), 24.0, 32.0, 48.0, 64.0, 65.0)
"""Bins of the staleness histogram, in published versions: single versions up to 16, then wider ones."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One line of the catalogue. ``per`` is the denominator in words (empty for gauges and totals)."""

    name: str
    kind: type[Value]
    unit: str
    per: str
    meaning: str
    shown: str = ""


_ROLLOUT = (
    Metric("rollout/reward", Mean, "reward", "episodes finished since the last step", "Raw outcome", "progress"),
    Metric("rollout/success", Mean, "share", "episodes finished that report success", "Solved episodes", "progress"),
    Metric("rollout/episodes", Sum, "episodes", "", "Episodes finished since the last step"),
    Metric("rollout/failures", Sum, "episodes", "", "Episodes that ended as a Failure since the last step"),
    Metric("rollout/retries", Sum, "groups", "", "Groups handed out again since the last step"),
    Metric("rollout/turns", Mean, "turns", "episodes finished", "Model calls of an episode"),
    Metric("rollout/tokens", Mean, "tokens", "episodes finished", "Sampled tokens of an episode"),
    Metric("rollout/seconds", Mean, "s", "episodes finished", "Duration of an episode"),
    Metric("rollout/truncated", Mean, "share", "episodes finished", "Episodes cut off by a limit"),
    Metric("rollout/forks", Mean, "rows", "episodes finished", "Rows of an episode beyond the first"),
    Metric("rollout/failed/*", Sum, "episodes", "", "Failures by reason since the last step"),
    Metric("rollout/env/*", Mean, "", "episodes finished that report it", "The environment's own number"),
)

_BATCH = (
    Metric("batch/reward", Mean, "reward", "trajectories of the batch", "Raw outcome", "report"),
    Metric("batch/groups", Sum, "groups", "", "Groups in the batch"),
    Metric("batch/trajectories", Sum, "trajectories", "", "Trajectories in the batch"),
    Metric("batch/rows", Sum, "rows", "", "Rows in the batch"),
    Metric("batch/tokens", Sum, "tokens", "", "Sampled tokens in the batch: denominator of token-mean"),
    Metric("batch/micro_batches", Sum, "micro-batches", "", "Packed forward passes"),
    Metric("batch/constant_groups", Mean, "share", "groups of two or more", "Groups whose rewards are all equal"),
    Metric("batch/truncated", Mean, "share", "rows of the batch", "Rows cut off by a limit (bootstrapped)"),
)

_STALENESS = (
    Metric("staleness/mean", Mean, "versions", "rows of the batch", "Learner's version minus row version", "progress"),
    Metric("staleness/max", Max, "versions", "", "Stalest row of the batch", "progress"),
    Metric("staleness/bound", Last, "versions", "", "Hard bound of the mode", "progress"),
    Metric("staleness/mixed_rows", Mean, "share", "rows of the batch", "Rows sampled by more than one version"),
    Metric("staleness/histogram", Histogram, "rows", "", "Rows of the batch by staleness", "report"),
)

_QUEUE = tuple(
    Metric(f"queue/{name}", Last, "groups", "", meaning, "progress" if name in {"waiting", "in_flight"} else "report")
    for name, meaning in (
        ("admitted", "Tasks let in since the start"),
        ("trained", "Groups trained since the start"),
        ("waiting", "Finished groups not yet trained"),
        ("in_flight", "Groups in rollout"),
        ("failed", "Groups given up since the start"),
        ("expired", "Groups too old to be trained since the start"),
        ("rejected", "Groups refused at the door since the start"),
    )
)

_TIME = tuple(
    Metric(f"time/{name}", Sum, "s", "", meaning, "report")
    for name, meaning in (
        ("wait", "Learner waits for a batch"),
        ("train", "Learner trains"),
        ("barrier", "Learner waits for groups in flight (sync and lagged)"),
        ("publish", "Weights move to the engines"),
        ("evaluate", "Held-out evaluation"),
        ("step", "The whole step"),
    )
)

_SPEED = (
    Metric("speed/engine_tokens", Last, "tokens/s", "", "Sampled per second of wall clock", "progress"),
    Metric("speed/learner_tokens", Last, "tokens/s", "", "Trained per second of training", "progress"),
    Metric("speed/engine_busy", Last, "share", "wall clock", "Time in which the engines decode", "report"),
    Metric("tokens/generated", Last, "tokens", "", "Sampled since the start, evaluation included"),
    Metric("tokens/trained", Last, "tokens", "", "Trained since the start"),
    Metric("tokens/dropped", Sum, "tokens", "", "Tokens of the batch without a usable behaviour log-prob"),
)

_OUTCOME = (
    Metric("outcome/updated", Last, "steps", "", "Batches that moved the policy, since the start"),
    Metric("outcome/critic_only", Last, "steps", "", "Warm-up batches that moved only the critic, since the start"),
    Metric("outcome/skipped", Last, "steps", "", "Batches that moved nothing, since the start", "progress"),
)

_EVALUATION = (
    Metric("eval/success", Mean, "share", "held-out episodes that did not fail", "Solved held-out tasks", "report"),
    Metric("eval/success_low", Last, "share", "", "Lower end of the 95 % Wilson interval of eval/success"),
    Metric("eval/success_high", Last, "share", "", "Upper end of the 95 % Wilson interval of eval/success"),
    Metric("eval/reward", Mean, "reward", "held-out episodes that did not fail", "Raw outcome on held-out tasks"),
    Metric("eval/episodes", Sum, "episodes", "", "Held-out episodes that did not fail"),
    Metric("eval/failures", Sum, "episodes", "", "Held-out episodes that failed (never counted as 0)"),
    Metric("eval/tokens", Mean, "tokens", "held-out episodes that did not fail", "Sampled tokens of an episode"),
)

_RUN = (Metric("version", Last, "versions", "", "Published version of the policy after the batch"),)

CATALOGUE: tuple[Metric, ...] = (
    *_RUN,
    *_ROLLOUT,
    *_BATCH,
    *_STALENESS,
    *_QUEUE,
    *_TIME,
    *_SPEED,
    *_OUTCOME,
    *_EVALUATION,
)


@cache
def _tables() -> tuple[dict[str, Metric], tuple[tuple[str, Metric], ...]]:
    from windage.runtime.learner_metrics import LEARNER_METRICS

    entries = (*CATALOGUE, *LEARNER_METRICS)
    exact = {entry.name: entry for entry in entries if not entry.name.endswith("*")}
    families = tuple((entry.name[:-1], entry) for entry in entries if entry.name.endswith("*"))
    return exact, families


def describe(name: str) -> Metric | None:
    """The catalogue's line for a metric; None when it is unknown.

    >>> describe("staleness/max").unit
    'versions'
    """
    exact, families = _tables()
    if name in exact:
        return exact[name]
    return next((entry for prefix, entry in families if name.startswith(prefix) and len(name) > len(prefix)), None)
