"""A small world for the real pipeline: a learner, engines and rollouts made of random durations and version stamps.

The rows are real records; what is learnt is only *which* groups were trained, in which batch, at which versions. The
checks at the end recompute everything from what the world saw, never from the queue's own counters.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import anyio
import numpy as np
import trio
import trio.testing

from windage.assembly.config import AssemblyConfig
from windage.assembly.fifo import FifoAssembler
from windage.learner.protocol import StepReport
from windage.queue.config import QueueConfig
from windage.queue.pacing import Pacing
from windage.queue.queue import Accepted, Retired, Retry, TrajectoryQueue
from windage.records import Failure, Lease, Row, StopReason, Task, TrainBatch, Trajectory, TrajectoryGroup
from windage.runtime.pipeline import Pipeline, Step
from windage.runtime.streak import FailureStreak

HOUR = 3600.0


def make_row(group_id: str, member: int, *, versions=(0, 0), prompt: int = 2, seed: int = 0, index: int = 0) -> Row:
    """A row of ``prompt`` tokens and one sampled token a version."""
    total = prompt + len(versions)
    mask = np.arange(total) >= prompt
    draw = np.random.default_rng(seed)
    return Row(
        row_id=f"{group_id}/{member}/{index}",
        trajectory_id=f"{group_id}/{member}",
        group_id=group_id,
        token_ids=draw.integers(0, 100, total).astype(np.int32),
        action_mask=mask,
        behavior_logprobs=np.where(mask, np.float32(-0.5), np.float32(np.nan)).astype(np.float32),
        policy_version=np.array([-1] * prompt + list(versions), np.int32),
        rewards=np.zeros(total, np.float32),
        turn_ids=np.where(mask, 0, -1).astype(np.int32),
        stop_reason=StopReason.EOS,
    )


def make_group(lease: Lease, *, versions=(0, 0), failures=(), members: int | None = None, prompt: int = 2):
    """A finished group of ``members`` one-row trajectories (default: the task's group size less the failures)."""
    members = lease.task.group_size - len(failures) if members is None else members
    trajectories = tuple(
        Trajectory(
            trajectory_id=f"{lease.group_id}/{member}",
            group_id=lease.group_id,
            task_id=lease.task.task_id,
            rows=(make_row(lease.group_id, member, versions=versions, prompt=prompt, seed=lease.task.seed + member),),
            reward=float(member),
            stop_reason=StopReason.EOS,
        )
        for member in range(members)
    )
    return TrajectoryGroup(
        group_id=lease.group_id,
        task=lease.task,
        position=lease.position,
        trajectories=trajectories,
        failures=tuple(failures),
        attempt=lease.attempt,
    )


def tasks(count: int | None = None, *, start: int = 0, sources=("arithmetic",), group_size: int = 2) -> Iterator[Task]:
    """Tasks ``t000 …``; without end when ``count`` is None."""
    index = start
    while count is None or index < count:
        source = sources[index % len(sources)]
        yield Task(task_id=f"t{index:03d}", source=source, group_size=group_size, seed=index)
        index += 1


def failure(reason: str = "engine", *, retry: bool = True, tokens: int = 0) -> Failure:
    return Failure(trajectory_id="t/0", reason=reason, detail=f"{reason} said no", retry=retry, tokens=tokens)


@dataclass
class World:
    """What really happened. ``random`` decides durations and failures; ``pick_outcome`` decides about batches."""

    seed: int = 0
    fail_share: float = 0.0
    outcome_of: Callable[[int], str] = lambda step: "updated"
    duration_of: Callable[[Lease, random.Random], float] = lambda lease, draw: draw.expovariate(1.0)
    train_seconds: Callable[[random.Random], float] = lambda draw: draw.expovariate(2.0)
    fails: Callable[[Lease], bool] | None = None  # None: by ``fail_share``
    live: int = 0  # version that the engines serve
    trained: list[TrainBatch] = field(default_factory=list)
    started: Counter[str] = field(default_factory=Counter)
    retired: list[str] = field(default_factory=list)
    finished_at: dict[str, float] = field(default_factory=dict)
    on_complete: Callable[[Step], None] = lambda step: None
    on_train: Callable[[TrainBatch], None] = lambda batch: None

    def __post_init__(self) -> None:
        self.draw = random.Random(self.seed)

    # rollout ------------------------------------------------------------------------------------------------------

    async def roll(self, lease: Lease) -> TrajectoryGroup:
        self.started[lease.task.task_id] += 1
        before = self.live
        await anyio.sleep(self.duration_of(lease, self.draw))
        if self.fails(lease) if self.fails else self.draw.random() < self.fail_share:
            count = lease.task.group_size
            return make_group(lease, failures=[failure(retry=self.draw.random() < 0.5, tokens=3)] * count)
        return make_group(lease, versions=(before, self.live))

    # learner ------------------------------------------------------------------------------------------------------

    async def train(self, batch: TrainBatch) -> StepReport:
        self.on_train(batch)
        await anyio.sleep(self.train_seconds(self.draw))
        self.trained.append(batch)
        return StepReport(step=batch.step, outcome=self.outcome_of(batch.step), tokens_trained=batch.action_tokens)

    async def publish(self, version: int) -> None:
        await anyio.sleep(self.draw.random() * 0.3)
        assert version == self.live + 1
        self.live = version
        await anyio.sleep(self.draw.random() * 0.1)

    # observer -----------------------------------------------------------------------------------------------------

    def batch_taken(self, batch: TrainBatch) -> None:
        pass

    def group_finished(self, group: TrajectoryGroup, outcome: Accepted | Retry | Retired) -> None:
        if isinstance(outcome, Retired):
            self.retired.append(group.task.task_id)
        if isinstance(outcome, Accepted):
            self.finished_at[group.task.task_id] = anyio.current_time()

    async def before_complete(self, step: int, report: StepReport, version: int) -> None:
        await anyio.sleep(self.draw.random() * 0.1)

    async def after_complete(self, step: Step) -> None:
        self.on_complete(step)

    # checks -------------------------------------------------------------------------------------------------------

    @property
    def trained_tasks(self) -> list[str]:
        return [task for batch in self.trained for task in batch.group_ids]

    def staleness(self) -> list[int]:
        """Of every trained row: publishes before its batch was taken, less its oldest stamp. No queue code."""
        published = 0
        ages: list[int] = []
        for batch in self.trained:
            ages += [published - int(row.policy_version[row.action_mask].min()) for row in batch.rows]
            published += self.outcome_of(batch.step) == "updated"
        return ages

    def check(self, queue: TrajectoryQueue, *, bound: int, drawn: int) -> None:
        """Everything that must hold at the end of a run that let ``drawn`` tasks in."""
        once = Counter(self.trained_tasks)
        assert not [task for task, times in once.items() if times != 1], "trained more than once"
        assert [batch.step for batch in self.trained] == list(range(len(self.trained)))
        ages = self.staleness()
        assert min(ages) >= 0
        assert max(ages) <= bound, f"staleness {max(ages)} > {bound}"
        waiting = set(self.finished_at) - set(once)
        assert len(waiting) == queue.waiting, "a task vanished"
        assert len(once) + len(self.retired) + len(waiting) == drawn, "a task vanished"
        counts = queue.ledger.counts()
        ends = ("trained", "waiting", "in_flight", "failed", "expired", "rejected")
        assert counts["admitted"] == drawn == sum(counts[name] for name in ends)
        assert counts["in_flight"] == 0
        skipped = sum(len(batch.group_ids) for batch in self.trained if self.outcome_of(batch.step) == "skipped")
        assert counts["trained"] == len(once) - skipped


def open_queue(
    path=None, *, pacing: Pacing, steps: int | None = None, kind=TrajectoryQueue, budget: int = 16, **config
):
    return kind.open(
        path,
        pacing=pacing,
        assembler=FifoAssembler(AssemblyConfig(token_budget=budget)),
        config=QueueConfig(**config),
        steps=steps,
        clock=lambda: trio.current_time(),
    )


def make_pipeline(world: World, queue: TrajectoryQueue, *, steps: int, source=None, kind=Pipeline, **settings):
    fields = dict(
        source=source if source is not None else tasks(start=queue.admitted),
        queue=queue,
        roll=world.roll,
        learner=world,
        publish=world.publish,
        observer=world,
        streak=FailureStreak(limit=1000),
        steps=steps,
        version=queue.version,
        first_step=queue.completed,
        resumed=queue.resumed,
        batch_seconds=24 * HOUR,
    )
    return kind(**{**fields, **settings})


def run(main, *, deadline: float = 1000 * HOUR):
    """Run an async function on a virtual clock that jumps whenever everybody sleeps; a hang is ``TooSlowError``."""

    async def bounded() -> None:
        with trio.fail_after(deadline):
            await main()

    trio.run(bounded, clock=trio.testing.MockClock(autojump_threshold=0))


def derived_bound(*, staleness: int, window: int, groups_per_step: int) -> int:
    """docs/staleness.md, written down a second time."""
    return staleness + math.ceil((window - 1) / groups_per_step)
