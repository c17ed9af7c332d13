"""EngineGroup under a virtual clock: requests outlive their engine, and a fresh engine is routable only in sync."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import anyio
import numpy as np
import pytest
import trio
import trio.testing

from windage.engines.protocol import Completion, GenerateRequest, Sampling
from windage.errors import DeadlineExceeded, EngineError, EngineUnavailable
from windage.runtime.engines import EngineGroup


class FakeChild:
    log = Path("engine.log")

    def __init__(self):
        self.dead = anyio.Event()

    async def wait(self):
        await self.dead.wait()
        return -9

    async def stop(self, *, grace=5.0):
        self.dead.set()

    def kill(self):
        self.dead.set()


class FakeEngine:
    def __init__(self, index, child, *, seconds=1.0, broken=False):
        self.index, self.child, self.seconds, self.broken = index, child, seconds, broken
        self.synced = False
        self.served: list[list[str]] = []

    async def generate(self, requests):
        assert self.synced, "a request reached an engine that does not serve the published version"
        ids = [request.request_id for request in requests]
        self.served.append(ids)
        if self.broken:
            raise EngineError("prompt too long")
        with anyio.move_on_after(self.seconds):
            await self.child.dead.wait()
        if self.child.dead.is_set():
            raise EngineUnavailable("connection reset")
        return [
            Completion(
                request_id=i,
                token_ids=np.array([1, 2], np.int32),
                logprobs=np.zeros(2, np.float32),
                policy_version=np.zeros(2, np.int32),
                finish_reason="stop",
            )
            for i in ids
        ]


class World:
    """Launches fake engines and remembers them."""

    def __init__(self, *, count=1, sync_seconds=2.0, broken=False, **settings):
        self.launched: list[FakeEngine] = []
        self.notes: list[str] = []
        self.broken = broken
        self.sync_seconds = sync_seconds
        self.group = EngineGroup(self.launch, count=count, note=self.notes.append, **settings)

    async def launch(self, index):
        child = FakeChild()
        engine = FakeEngine(index, child, broken=self.broken)
        self.launched.append(engine)
        return child, engine

    async def resync(self, engine):
        await anyio.sleep(self.sync_seconds)
        engine.synced = True


def request(name):
    return GenerateRequest(request_id=name, prompt_ids=np.array([3], np.int32), sampling=Sampling(max_tokens=2))


def play(scenario):
    """Run under trio's mock clock: waiting costs nothing, and a deadlock is a failure, not a hang."""

    async def with_deadline():
        with anyio.fail_after(10_000):
            await scenario()

    trio.run(with_deadline, clock=trio.testing.MockClock(autojump_threshold=0))


def test_requests_survive_the_death_of_their_engine():
    async def scenario():
        world = World()
        async with anyio.create_task_group() as tasks:
            await tasks.start(world.group.run, world.resync)
            answers = []

            async def ask():
                answers.extend(await world.group.generate([request("g/0/0"), request("g/1/0")]))

            async with anyio.create_task_group() as asking:
                asking.start_soon(ask)
                await anyio.sleep(0.5)
                world.launched[0].child.kill()
            assert [a.request_id for a in answers] == ["g/0/0", "g/1/0"]
            assert len(world.launched) == 2
            assert world.launched[1].served == [["g/0/0", "g/1/0"]], "the list is sent again as one, in order"
            assert world.group.restarts == 1
            assert world.group.tokens_generated == 4
            assert any("restarting" in note for note in world.notes)
            tasks.cancel_scope.cancel()

    play(scenario)


def test_unreachable_but_living_engine_is_restarted():
    async def scenario():
        world = World()
        async with anyio.create_task_group() as tasks:
            await tasks.start(world.group.run, world.resync)
            first = world.launched[0]

            async def unreachable(requests):
                raise EngineUnavailable("connection refused")

            first.generate = unreachable
            (answer,) = await world.group.generate([request("g/0/0")])
            assert answer.request_id == "g/0/0"
            assert first.child.dead.is_set()
            tasks.cancel_scope.cancel()

    play(scenario)


def test_a_refused_request_is_not_retried():
    async def scenario():
        world = World(broken=True)
        async with anyio.create_task_group() as tasks:
            await tasks.start(world.group.run, world.resync)
            with pytest.raises(EngineError, match="prompt too long"):
                await world.group.generate([request("g/0/0")])
            assert len(world.launched[0].served) == 1
            tasks.cancel_scope.cancel()

    play(scenario)


def test_turns_of_one_episode_stay_on_one_engine_and_all_engines_work():
    async def scenario():
        world = World(count=2)
        async with anyio.create_task_group() as tasks:
            await tasks.start(world.group.run, world.resync)
            requests = [request(f"g{group}/{turn}") for group in range(16) for turn in range(3)]
            answers = await world.group.generate(requests)
            assert [a.request_id for a in answers] == [r.request_id for r in requests]
            homes = Counter(
                (engine.index, name.rpartition("/")[0])
                for engine in world.launched
                for served in engine.served
                for name in served
            )
            assert set(homes.values()) == {3}
            assert {index for index, _ in homes} == {0, 1}
            tasks.cancel_scope.cancel()

    play(scenario)


def test_an_engine_that_keeps_dying_stops_the_run_and_names_its_log():
    async def scenario():
        world = World(max_restarts=2)
        with pytest.raises(ExceptionGroup) as caught:
            async with anyio.create_task_group() as tasks:
                await tasks.start(world.group.run, world.resync)

                async def killer():
                    while True:
                        await anyio.sleep(5)
                        world.launched[-1].child.kill()

                tasks.start_soon(killer)
        (error,) = _leaves(caught.value)
        assert isinstance(error, EngineError)
        assert "after 2 restarts" in str(error)
        assert "engine.log" in str(error)

    play(scenario)


def test_waiting_for_a_routable_engine_has_a_deadline():
    async def scenario():
        world = World(patience=30.0, sync_seconds=1000.0)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(world.group.run, world.resync)
            await anyio.sleep(1)
            with pytest.raises(DeadlineExceeded, match="a routable engine"):
                await world.group.generate([request("g/0/0")])
            tasks.cancel_scope.cancel()

    play(scenario)


def _leaves(error):
    if isinstance(error, BaseExceptionGroup):
        return [leaf for inner in error.exceptions for leaf in _leaves(inner)]
    return [error]
