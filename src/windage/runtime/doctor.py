"""``windage doctor``: play and train one batch of a recipe in a scratch folder, and say what was found."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import anyio

from windage.assembly.fifo import FifoAssembler
from windage.engines.protocol import EngineStatus
from windage.errors import RunStopped, explain
from windage.learner.protocol import LearnerStatus, Published, StepReport
from windage.queue.queue import TrajectoryQueue
from windage.records import TrajectoryGroup
from windage.runtime.config import RunConfig
from windage.runtime.fleet import Fleet, open_fleet
from windage.runtime.run_folder import RunFolder

__all__ = ["Findings", "diagnose"]

_MISMATCH = 1e-3
"""Median |log ratio| at lag 0 above which engine and learner are said to disagree, in nats (Windage)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What one batch showed."""

    learner: LearnerStatus
    engine: EngineStatus
    published: Published
    groups: Sequence[TrajectoryGroup]
    report: StepReport
    stops: tuple[int, ...]
    vocabulary: int
    preserving: bool
    rollout_seconds: float

    def lines(self) -> Iterator[str]:
        """Findings in words, one a line."""
        learner = self.learner
        yield f"learner: {learner.parameters:,} parameters, {learner.trainable:,} trainable, {learner.device}"
        yield f"engine: {self.engine.device}, vocabulary {self.engine.vocab_size:,} (tokenizer {self.vocabulary:,})"
        yield f"tokenizer: a turn ends at id {', '.join(map(str, self.stops))}"
        probe = len(self.published.probe_ids)
        yield f"publish: the engine proved version {self.published.version} with a probe of {probe} tokens"
        yield self._template()
        yield from self._mismatch(self.report.metrics)
        yield from self._rollouts()
        yield (
            f"learner: one batch of {self.report.tokens_trained:,} tokens in {self.report.seconds:.1f} s "
            f"({self.report.outcome}{': ' + self.report.reason if self.report.reason else ''})"
        )

    def _template(self) -> str:
        episodes = [t for group in self.groups for t in group.trajectories]
        rewritten = sum(t.metrics.get("rewritten", 0.0) > 0 for t in episodes)
        if rewritten:
            return f"template: REWRITES history in {rewritten} of {len(episodes)} episodes; rows are forked there"
        if not self.preserving:
            return "template: REWRITES history for some replies (thinking); rows fork there, and each time is counted"
        return f"template: prefix-preserving, by a check of its own and in all {len(episodes)} episodes"

    def _mismatch(self, metrics: Mapping[str, float]) -> Iterator[str]:
        median, tail = metrics.get("mismatch_lag0_p50"), metrics.get("mismatch_lag0_p99")
        if median is None or tail is None:
            yield "mismatch at lag 0: not measured (the algorithm takes no entry log-probs)"
            return
        verdict = "good" if median <= _MISMATCH else "TOO LARGE: compare dtypes, temperature and truncation"
        yield f"mismatch at lag 0: |log ratio| median {median:.2g}, 99th percentile {tail:.2g} nats: {verdict}"

    def _rollouts(self) -> Iterator[str]:
        episodes = [t for group in self.groups for t in group.trajectories]
        failures = [f for group in self.groups for f in group.failures]
        tokens = sum(t.action_tokens for t in episodes)
        success = sum(t.metrics.get("success", t.reward > 0) for t in episodes) / max(len(episodes), 1)
        yield (
            f"rollouts: {len(episodes)} episodes, {tokens:,} tokens in {self.rollout_seconds:.1f} s, "
            f"success {success:.1%}, mean reward {sum(t.reward for t in episodes) / max(len(episodes), 1):.3f}"
        )
        for failure in failures[:3]:
            yield f"rollouts: FAILED {failure.trajectory_id} ({failure.reason}): {failure.detail}"
        constant = sum(len({t.reward for t in group.trajectories}) < 2 for group in self.groups)
        yield f"rollouts: {constant} of {len(self.groups)} groups have equal rewards (no group-relative gradient)"


async def diagnose(config: RunConfig) -> str:
    """Start everything, play and train one batch, and describe it.

    Raises:
        RunStopped: no episode could be played; the reasons are in the message.
    """
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="windage-doctor-") as scratch:
        folder = RunFolder(Path(scratch))
        async with open_fleet(config, folder, note=lambda text: None) as fleet, anyio.create_task_group() as background:
            lines += (await _examine(config, fleet, background)).lines()
            background.cancel_scope.cancel()
    return "\n".join(lines)


async def _examine(config: RunConfig, fleet: Fleet, background: anyio.abc.TaskGroup) -> Findings:
    published = await fleet.publisher.publish(0)
    await fleet.serve(background)
    with TrajectoryQueue.open(
        None, pacing=config.pacing, assembler=FifoAssembler(config.assembly), config=config.queue, steps=1
    ) as queue:
        started = time.monotonic()
        groups = await _play(fleet, queue)
        seconds = time.monotonic() - started
        batch = queue.take(0, 0) if queue.ready() else queue.drain(0, 0)
        if batch is None:
            raise RunStopped(_why_nothing(groups))
        report = await fleet.learner.train(batch)
    return Findings(
        learner=await fleet.learner.status(),
        engine=await fleet.engines.status(),
        published=published,
        groups=groups,
        report=report,
        stops=fleet.tokenizer.stop_token_ids,
        vocabulary=fleet.tokenizer.vocab_size,
        preserving=fleet.tokenizer.prefix_preserving(tools=fleet.environment.tools()),
        rollout_seconds=seconds,
    )


async def _play(fleet: Fleet, queue: TrajectoryQueue) -> list[TrajectoryGroup]:
    """One batch of groups, each played once."""
    source = fleet.tasks.train()
    leases = [queue.admit(next(source)) for _ in range(min(queue.capacity(), queue.groups_per_step))]
    queue.end()
    for lease in leases:
        fleet.worker.expect(lease)
    groups: list[TrajectoryGroup] = []

    async def play(index: int) -> None:
        groups.append(await fleet.worker.roll(leases[index]))

    async with anyio.create_task_group() as rolling:
        for index in range(len(leases)):
            rolling.start_soon(play, index)
    for group in sorted(groups, key=lambda group: group.position):
        queue.finish(group)
    if not any(group.trajectories for group in groups):
        raise RunStopped(_why_nothing(groups))
    return groups


def _why_nothing(groups: Sequence[TrajectoryGroup]) -> str:
    failures = [failure for group in groups for failure in group.failures]
    first = f"{failures[0].reason}: {failures[0].detail}" if failures else "no action tokens"
    return explain("no episode could be played", got=f"{len(failures)} failures, first {first}")
