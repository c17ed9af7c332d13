"""From records to metrics: what a finished group and a taken batch say about themselves."""

from __future__ import annotations

import math

import numpy as np

from windage.learner.protocol import StepReport
from windage.records import Row, StopReason, TrainBatch, TrajectoryGroup
from windage.runtime.catalogue import STALENESS_EDGES
from windage.runtime.learner_metrics import HISTOGRAM_EDGES
from windage.runtime.metrics import Histogram, Last, Max, Mean, Metrics, Sum

__all__ = ["measure_batch", "measure_group", "measure_report", "wilson"]


def measure_group(group: TrajectoryGroup) -> Metrics:
    """Rollout metrics of one finished group. Failures are counted, never averaged in as reward 0."""
    metrics = Metrics()
    members = group.trajectories
    metrics.add("rollout/episodes", Sum(len(members)))
    metrics.add("rollout/failures", Sum(len(group.failures)))
    for failure in group.failures:
        metrics.add(f"rollout/failed/{failure.reason}", Sum(1))
    for member in members:
        metrics.add("rollout/reward", Mean(member.reward, 1))
        metrics.add("rollout/turns", Mean(len(member.turns), 1))
        metrics.add("rollout/tokens", Mean(member.action_tokens, 1))
        metrics.add("rollout/seconds", Mean(member.finished - member.started, 1))
        metrics.add("rollout/truncated", Mean(member.stop_reason is StopReason.TRUNCATED, 1))
        metrics.add("rollout/forks", Mean(len(member.rows) - 1, 1))
        for name, value in member.metrics.items():
            known = "rollout/success" if name == "success" else f"rollout/env/{name}"
            metrics.add(known, Mean(float(value), 1))
    return metrics


def measure_batch(batch: TrainBatch, *, bound: int | None = None) -> Metrics:
    """Batch and staleness metrics of one batch. ``bound``: the mode's hard staleness bound, in versions."""
    first_rows = np.unique(batch.trajectory_of, return_index=True)[1]
    metrics = Metrics(
        {
            "batch/reward": Mean.of(batch.rewards[first_rows]),
            "batch/groups": Sum(len(batch.group_ids)),
            "batch/trajectories": Sum(len(first_rows)),
            "batch/rows": Sum(len(batch.rows)),
            "batch/tokens": Sum(batch.action_tokens),
            "batch/micro_batches": Sum(len(batch.micro_batches)),
            "batch/constant_groups": _constant_groups(batch, first_rows),
            "batch/truncated": Mean.of(row.stop_reason is StopReason.TRUNCATED for row in batch.rows),
            "staleness/mean": Mean.of(batch.staleness),
            "staleness/max": Max(float(batch.staleness.max(initial=0))),
            "staleness/mixed_rows": Mean.of(_mixed(row) for row in batch.rows),
            "staleness/histogram": Histogram.of(batch.staleness.tolist(), edges=STALENESS_EDGES),
        }
    )
    if bound is not None:
        metrics.add("staleness/bound", Last(bound))
    return metrics


def measure_report(report: StepReport) -> Metrics:
    """The learner's own numbers under ``learner/``, already reduced over micro-batches and ranks by the learner."""
    metrics = Metrics()
    for name, value in report.metrics.items():
        metrics.add(f"learner/{name.removeprefix('learner/')}", Last(float(value)))
    for name, counts in report.histograms.items():
        short = name.removeprefix("learner/")
        edges = HISTOGRAM_EDGES.get(short) or tuple(float(index) for index in range(len(counts) + 1))
        metrics.add(f"learner/histogram/{short}", Histogram(edges, tuple(map(float, counts))))
    metrics.add("tokens/dropped", Sum(report.tokens_dropped))
    if report.seconds > 0:
        metrics.add("speed/learner_tokens", Last(report.tokens_trained / report.seconds))
    return metrics


def wilson(successes: float, episodes: float, *, z: float = 1.96) -> tuple[float, float]:
    """Wilson score interval of a share; ``(0, 1)`` when there are no episodes.

    >>> [round(bound, 3) for bound in wilson(9, 10)]
    [0.596, 0.982]
    """
    if episodes <= 0:
        return 0.0, 1.0
    share = successes / episodes
    centre = (share + z * z / (2 * episodes)) / (1 + z * z / episodes)
    half = z / (1 + z * z / episodes) * math.sqrt(share * (1 - share) / episodes + z * z / (4 * episodes**2))
    return max(0.0, centre - half), min(1.0, centre + half)


def _constant_groups(batch: TrainBatch, first_rows: np.ndarray) -> Mean:
    """Share of groups of two or more whose raw outcomes are all equal: they give no group-relative gradient."""
    by_group: dict[int, list[float]] = {}
    for index in first_rows:
        by_group.setdefault(int(batch.group_of[index]), []).append(float(batch.rewards[index]))
    pairs = [rewards for rewards in by_group.values() if len(rewards) > 1]
    return Mean.of(max(rewards) - min(rewards) <= 1e-6 for rewards in pairs)


def _mixed(row: Row) -> bool:
    versions = row.policy_version[row.action_mask]
    return len(versions) > 0 and bool(versions.min() != versions.max())
