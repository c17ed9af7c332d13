"""The pipeline: three stages under one task group. Decisions are made by the synchronous queue; stages only wait.

    source ─► admit ──leases──► rollout ──finish()──► queue ──take()──► train ─► publish
                ▲                                       ▲                            │
                └───────────── changes ◄────────────────┴──── complete(): slots ◄────┘

    admit    waits for capacity in the queue
             unblocked by a completed batch (after its publish), or a retired group
             drops when never: a task that is admitted is in the ledger for good

    rollout  waits for a lease, then for its episodes (engine, tools, rewards)
             unblocked by admit; ends when admit has closed the lease stream and every group is finished
             drops when a group keeps failing: retired with its reason, and the hole is refilled

    train    waits for a batch in the look-ahead window; with a barrier, before a publish, also for in-flight groups
             unblocked by a finished group, or by the end of the data
             drops when the tail of the data is shorter than a batch and the declared policy is ``drop``

A stage closes its output; any error cancels all stages and reaches the caller.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from windage.learner.protocol import Learner, StepReport
from windage.queue.queue import Accepted, Lease, Retired, Retry, TrajectoryQueue
from windage.records import Task, TrainBatch, TrajectoryGroup
from windage.runtime.changes import Changes
from windage.runtime.stopwatch import Stopwatch
from windage.runtime.streak import FailureStreak

__all__ = ["Observer", "Pipeline", "Step"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One finished batch: what went in, what came out, and where the time went (seconds)."""

    batch: TrainBatch
    report: StepReport
    version: int
    seconds: dict[str, float] = field(default_factory=dict)


class Observer(Protocol):
    """Looks on, evaluates and checkpoints. Called between stages, never inside a decision."""

    def batch_taken(self, batch: TrainBatch) -> None:
        """A batch was chosen and is durable."""
        ...

    def group_finished(self, group: TrajectoryGroup, outcome: Accepted | Retry | Retired) -> None:
        """A group came back from its rollout."""
        ...

    async def before_complete(self, step: int, report: StepReport, version: int) -> None:
        """After the publish, before slots are freed: evaluation happens here, on a quiet engine in ``lagged`` mode."""
        ...

    async def after_complete(self, step: Step) -> None:
        """The batch is completed: metrics and checkpoints."""
        ...


@dataclass(kw_only=True)
class Pipeline:
    """Runs batches ``first_step … steps-1``.

    ``roll`` turns a lease into a group and never raises for a bad rollout. ``publish`` makes a version live on every
    engine. ``expect`` hears of a lease before its rollout starts (lockstep counts episodes). ``resumed`` are leases
    that were in flight when an earlier controller died.
    """

    source: Iterator[Task]
    queue: TrajectoryQueue
    roll: Callable[[Lease], Awaitable[TrajectoryGroup]]
    learner: Learner
    publish: Callable[[int], Awaitable[object]]
    observer: Observer
    streak: FailureStreak
    steps: int
    version: int
    first_step: int = 0
    resumed: tuple[Lease, ...] = ()
    expect: Callable[[Lease], None] = lambda lease: None
    batch_seconds: float = 3600.0

    def __post_init__(self) -> None:
        self._changes = Changes()
        self._source_ended = False
        self._trained_all = False

    async def run(self) -> None:
        """Run all stages to the end; the first error wins and cancels the rest."""
        leases, incoming = anyio.create_memory_object_stream[Lease](math.inf)
        async with anyio.create_task_group() as stages:
            stages.start_soon(self._admit, leases)
            stages.start_soon(self._rollout, incoming)
            stages.start_soon(self._train)

    # -- admit -------------------------------------------------------------------------------------------------------

    async def _admit(self, leases: MemoryObjectSendStream[Lease]) -> None:
        async with leases:
            self._hand_out(self.resumed, leases)
            while not self._admission_over():
                self._hand_out(self._admissible(), leases)
                await self._changes.until(
                    lambda: self._admission_over() or self.queue.capacity() > 0,
                    awaiting=lambda: f"a free slot; {self._stuck()}",
                    seconds=self.batch_seconds,
                )
        self._changes.notify()

    def _admission_over(self) -> bool:
        return self._trained_all or self._source_ended

    def _admissible(self) -> list[Lease]:
        """Every lease that may start now, taken in one go (no ``await``: a wave is admitted as a whole)."""
        wave: list[Lease] = []
        for _ in range(self.queue.capacity()):
            task = next(self.source, None)
            if task is None:
                self._source_ended = True
                self.queue.end()
                break
            wave.append(self.queue.admit(task))
        return wave

    def _hand_out(self, wave: Sequence[Lease], leases: MemoryObjectSendStream[Lease]) -> None:
        for lease in wave:
            self.expect(lease)
        for lease in wave:
            leases.send_nowait(lease)

    # -- rollout -----------------------------------------------------------------------------------------------------

    async def _rollout(self, leases: MemoryObjectReceiveStream[Lease]) -> None:
        async with leases, anyio.create_task_group() as groups:
            async for lease in leases:
                groups.start_soon(self._one_group, lease)

    async def _one_group(self, lease: Lease) -> None:
        """Roll one group until the queue accepts or retires it."""
        while True:
            group = await self.roll(lease)
            outcome = self.queue.finish(group)
            self.observer.group_finished(group, outcome)
            pause = self.streak.record(group, outcome)
            self._changes.notify()
            if not isinstance(outcome, Retry):
                return
            lease = outcome.lease
            self.expect(lease)
            await anyio.sleep(pause)

    # -- train -------------------------------------------------------------------------------------------------------

    async def _train(self) -> None:
        for step in range(self.first_step, self.steps):
            clock = Stopwatch()
            batch = await self._next_batch(step)
            if batch is None:
                break
            clock.lap("wait")
            self.observer.batch_taken(batch)
            report = await self.learner.train(batch)
            clock.lap("train")
            if report.outcome == "updated":
                await self._barrier()
                clock.lap("barrier")
                await self.publish(self.version + 1)
                self.version += 1
                clock.lap("publish")
            await self.observer.before_complete(step, report, self.version)
            clock.lap("evaluate")
            self.queue.complete(step, report.outcome, self.version)
            self._changes.notify()
            await self.observer.after_complete(
                Step(batch=batch, report=report, version=self.version, seconds=clock.laps)
            )
        self._trained_all = True
        self._changes.notify()

    async def _next_batch(self, step: int) -> TrainBatch | None:
        """The next batch; a short one or None when the data has ended and no full one can come."""
        await self._changes.until(
            lambda: self.queue.ready() or self._dry(),
            awaiting=lambda: f"batch {step}; {self._stuck()}",
            seconds=self.batch_seconds,
        )
        if self.queue.ready():
            return self.queue.take(step, self.version)
        return self.queue.drain(step, self.version)

    def _dry(self) -> bool:
        return self._source_ended and self.queue.in_flight == 0

    async def _barrier(self) -> None:
        """In ``sync`` and ``lagged`` the version may only move when no group is in flight."""
        await self._changes.until(
            self.queue.may_publish, awaiting=lambda: f"groups in flight; {self._stuck()}", seconds=self.batch_seconds
        )

    def _stuck(self) -> str:
        """What is being waited for, by name."""
        return (
            f"{self.queue.in_flight} groups in flight, {self.queue.waiting} waiting, "
            f"oldest in flight: {self.queue.oldest_in_flight()}"
        )
