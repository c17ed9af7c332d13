"""Held-out evaluation: one episode a task, never a failure counted as 0."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import anyio

from windage.engines.protocol import Engine
from windage.environments.protocol import EnvironmentFactory
from windage.records import Failure, Lease, Task, Trajectory
from windage.rollout.config import RolloutConfig
from windage.rollout.lockstep import LockstepEngine
from windage.rollout.tokenizer import ChatTokenizer
from windage.rollout.worker import RolloutWorker

__all__ = ["Evaluation", "PlayedEpisode", "evaluate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayedEpisode:
    """An evaluated episode and its opening as the model saw it."""

    trajectory: Trajectory
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """``success`` and ``reward`` are means over the episodes that did not fail; ``failures`` counts the others."""

    success: float
    reward: float
    episodes: int
    failures: int
    tokens: float
    samples: tuple[PlayedEpisode, ...] = ()

    def as_dict(self) -> Mapping[str, Any]:
        """The numbers, without the samples."""
        return {name: getattr(self, name) for name in ("success", "reward", "episodes", "failures", "tokens")}

    def __str__(self) -> str:
        failed = f", {self.failures} failed" if self.failures else ""
        return f"success {self.success:.1%} of {self.episodes} episodes, reward {self.reward:.3f}{failed}"


async def evaluate(
    *,
    engine: Engine,
    factory: EnvironmentFactory,
    tokenizer: ChatTokenizer,
    config: RolloutConfig,
    tasks: Sequence[Task],
    temperature: float,
    samples: int = 0,
) -> Evaluation:
    """Play one episode of each task at ``temperature`` (0: greedy); keep the first ``samples`` as text."""
    worker = RolloutWorker(engine=engine, factory=factory, tokenizer=tokenizer, config=config, temperature=temperature)
    leases = [
        Lease(task=_single(task), group_id=f"eval-{index}-{task.task_id}", position=index)
        for index, task in enumerate(tasks)
    ]
    for lease in leases:
        worker.expect(lease)
    results: dict[int, tuple[Trajectory | Failure, str]] = {}

    async def play(lease: Lease) -> None:
        try:
            results[lease.position] = await worker.play(lease, 0)
        finally:
            if isinstance(engine, LockstepEngine):
                engine.leave(f"{lease.group_id}.0/0")

    async with anyio.create_task_group() as group:
        for lease in leases:
            group.start_soon(play, lease)
    return _summary([results[index] for index in range(len(leases))], samples)


def _single(task: Task) -> Task:
    return Task(task_id=task.task_id, source=task.source, data=task.data, group_size=1, seed=task.seed)


def _summary(results: Sequence[tuple[Trajectory | Failure, str]], samples: int) -> Evaluation:
    good = [PlayedEpisode(trajectory=t, prompt=prompt) for t, prompt in results if isinstance(t, Trajectory)]
    count = max(len(good), 1)
    return Evaluation(
        success=sum(_success(played.trajectory) for played in good) / count,
        reward=sum(played.trajectory.reward for played in good) / count,
        episodes=len(good),
        failures=len(results) - len(good),
        tokens=sum(played.trajectory.action_tokens for played in good) / count,
        samples=tuple(good[:samples]),
    )


def _success(trajectory: Trajectory) -> float:
    """The environment's own ``success``; without one, a positive outcome."""
    return float(trajectory.metrics.get("success", trajectory.reward > 0))
