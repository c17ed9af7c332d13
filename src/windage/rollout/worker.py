"""RolloutWorker: turns a lease into a group. Never raises for a bad rollout.

waits for    engine, environment, reward: each under its own deadline, the episode under one as well
unblocked by their answers, or by the deadline, which makes the sample a ``Failure``
drops when   never: a member is played again after a failure of a service; what is left goes to the queue, which decides
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import anyio

from windage.engines.protocol import Engine
from windage.environments.protocol import EnvironmentFactory
from windage.errors import WindageError
from windage.records import Failure, Lease, Trajectory, TrajectoryGroup
from windage.rollout.boundary import Broken, guarded
from windage.rollout.config import RolloutConfig
from windage.rollout.episode import Episode
from windage.rollout.lockstep import LockstepEngine
from windage.rollout.tokenizer import ChatTokenizer

__all__ = ["RolloutWorker"]

_CLOSE_SECONDS = 10.0


class RolloutWorker:
    """Plays groups. Any number of :meth:`roll` calls may run at once.

    With a :class:`~windage.rollout.lockstep.LockstepEngine`, :meth:`expect` must hear of a lease before it is rolled,
    and a group is handed back only when its whole wave is over: a kill in mid-wave leaves nothing half finished.
    """

    def __init__(
        self,
        *,
        engine: Engine,
        factory: EnvironmentFactory,
        tokenizer: ChatTokenizer,
        config: RolloutConfig,
        temperature: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._engine = engine
        self._lockstep = engine if isinstance(engine, LockstepEngine) else None
        self._factory = factory
        self._tokenizer = tokenizer
        self._config = config
        self._temperature = config.temperature if temperature is None else temperature
        self._clock = clock
        self._tools = tuple(factory.tools())

    def expect(self, lease: Lease) -> None:
        """Hear of a lease before any rollout of its wave starts."""
        if self._lockstep is not None:
            for member in range(lease.task.group_size):
                self._lockstep.expect(_key(lease, member))

    async def roll(self, lease: Lease) -> TrajectoryGroup:
        """Play every member of the lease's group; survivors and failures come back in member order."""
        results: dict[int, Trajectory | Failure] = {}
        async with anyio.create_task_group() as members:
            for member in range(lease.task.group_size):
                members.start_soon(self._member, lease, member, results)
        if self._lockstep is not None:
            await self._lockstep.wave_over()
        ordered = [results[member] for member in sorted(results)]
        return TrajectoryGroup(
            group_id=lease.group_id,
            task=lease.task,
            position=lease.position,
            trajectories=tuple(result for result in ordered if isinstance(result, Trajectory)),
            failures=tuple(result for result in ordered if isinstance(result, Failure)),
            attempt=lease.attempt,
        )

    async def play(self, lease: Lease, member: int, *, attempt: int = 0) -> tuple[Trajectory | Failure, str]:
        """One attempt of one member, and its opening as text. The environment is closed on every way out (trap 18)."""
        name = f"{lease.group_id}/{member}"
        try:
            environment = self._factory.make()
        except WindageError as error:
            return Failure(trajectory_id=name, reason="environment", detail=str(error)), ""
        episode = Episode(
            lease=lease,
            member=member,
            engine=self._engine,
            environment=environment,
            tokenizer=self._tokenizer,
            config=self._config,
            tools=self._tools,
            stop=tuple(self._factory.stop),
            temperature=self._temperature,
            clock=self._clock,
            attempt=attempt,
        )
        leaks: list[Broken] = []
        try:
            result = await guarded(episode.play, seconds=self._config.episode_seconds)
        finally:
            with anyio.CancelScope(shield=True):
                closed = await guarded(environment.close, seconds=_CLOSE_SECONDS)
                if closed is not None:
                    leaks.append(closed)
        if isinstance(result, Broken):
            failure = Failure(
                trajectory_id=name,
                reason=result.reason,
                detail=result.detail,
                retry=result.retry,
                tokens=episode.sampled,
            )
            return failure, episode.opening
        if leaks:  # what was played is good; the leak is counted
            result = replace(result, metrics={**result.metrics, "close_failed": 1.0})
        return result, episode.opening

    async def _member(self, lease: Lease, member: int, results: dict[int, Trajectory | Failure]) -> None:
        wasted = 0
        try:
            for attempt in range(self._config.retries + 1):
                result, _ = await self.play(lease, member, attempt=attempt)
                if isinstance(result, Failure):
                    wasted += result.tokens
                    result = replace(result, tokens=wasted)
                results[member] = result
                if not (isinstance(result, Failure) and result.retry):
                    break
        finally:
            if self._lockstep is not None:
                self._lockstep.leave(_key(lease, member))


def _key(lease: Lease, member: int) -> str:
    """The episode's part of its request ids."""
    return f"{lease.group_id}.{lease.attempt}/{member}"
