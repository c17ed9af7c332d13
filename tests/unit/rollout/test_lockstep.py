"""Lockstep: the lists that reach the engine depend on the tasks, never on timing."""

from __future__ import annotations

import random

import anyio
import pytest
from tests.rollout_fakes import ScriptedEngine, ScriptedFactory, lease, play

from windage.environments.protocol import Message, StepResult
from windage.errors import EngineError
from windage.rollout.config import RolloutConfig
from windage.rollout.lockstep import LockstepEngine
from windage.rollout.worker import RolloutWorker

OBSERVED = StepResult(messages=(Message(role="tool", content="=2|"),))
DONE = StepResult(reward=1.0, done=True)


def by_text(reply):
    """A tool call goes on, an answer ends."""
    return OBSERVED if reply.text.endswith(">") else DONE


class SlowEnvironments(ScriptedFactory):
    """Every step takes a random time; member 1 of each group ends a turn later than the others."""

    def __init__(self, seed, answers):
        super().__init__(answers)
        self.random = random.Random(seed)

    def make(self):
        environment = super().make()
        step, delays = environment.step, self.random

        async def slow(reply):
            await anyio.sleep(delays.uniform(0.01, 50))
            return await step(reply)

        environment.step = slow
        return environment


def lists_of(tokenizer, seed, *, replies, answers, groups=4, config=None):
    inner = ScriptedEngine(tokenizer, replies, seconds=1.0)
    engine = LockstepEngine(inner)
    factory = SlowEnvironments(seed, answers)
    worker = RolloutWorker(
        engine=engine,
        factory=factory,
        tokenizer=tokenizer,
        config=config or RolloutConfig(max_tokens=8, max_context=64, retries=1),
    )
    finished = []

    async def scenario():
        leases = [lease(2, group=f"g{index}") for index in range(groups)]
        for item in leases:
            worker.expect(item)

        async def one(item):
            finished.append((anyio.current_time(), await worker.roll(item)))

        async with anyio.create_task_group() as tasks:
            for item in leases:
                tasks.start_soon(one, item)

    play(scenario)
    return inner.lists, finished


def test_the_engine_sees_the_same_lists_whatever_the_tools_take(characters):
    replies = {(0, 0): "<1+1>", (1, 0): "<1+1>", (0, 1): "#2$", (1, 1): "#2$"}
    runs = [lists_of(characters, seed, replies=replies, answers=[OBSERVED, DONE])[0] for seed in range(5)]
    assert runs[0] == [
        [f"g{group}.0/{member}/{turn}" for group in range(4) for member in range(2)] for turn in range(2)
    ]
    assert all(run == runs[0] for run in runs)


def test_a_wave_comes_back_as_a_whole(characters):
    replies = {(0, 0): "#2$", (1, 0): "<1+1>", (1, 1): "#2$"}
    _, finished = lists_of(characters, 3, replies=replies, answers=[by_text, by_text])
    assert len(finished) == 4
    assert len({time for time, _ in finished}) == 1


def test_episodes_of_different_length_do_not_wait_for_the_finished(characters):
    replies = {(0, 0): "#2$", (1, 0): "<1+1>", (1, 1): "#2$"}

    lists, finished = lists_of(characters, 1, replies=replies, answers=[by_text, by_text])
    assert lists == [
        [f"g{group}.0/{member}/0" for group in range(4) for member in range(2)],
        [f"g{group}.0/1/1" for group in range(4)],
    ]
    assert all(len(group.trajectories) == 2 for _, group in finished)


def test_failures_and_retries_do_not_stop_the_round(characters):
    replies = {(0, 0): "#2$", (1, 0): "#2$"}
    lists, finished = lists_of(characters, 2, replies=replies, answers=[ValueError("bug")])
    assert len(finished) == 4
    assert all(len(group.failures) == 2 for _, group in finished)
    assert len(lists) == 1


def test_a_cancelled_sender_hands_the_round_on(characters):
    inner = ScriptedEngine(characters, {(0, 0): "#2$", (1, 0): "#2$"}, seconds=10)
    engine = LockstepEngine(inner)
    results = {}

    async def scenario():
        from windage.engines.protocol import GenerateRequest, Sampling

        def request(member):
            return GenerateRequest(
                request_id=f"g.0/{member}/0", prompt_ids=characters.encode("1"), sampling=Sampling(max_tokens=4)
            )

        async def ask(member, seconds):
            with anyio.move_on_after(seconds):
                results[member] = await engine.generate([request(member)])
            engine.leave(f"g.0/{member}")

        engine.expect("g.0/0")
        engine.expect("g.0/1")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, 0, 1000)
            await anyio.sleep(1)
            tasks.start_soon(ask, 1, 5)  # completes the round, sends it, and gives up in the middle
        await engine.wave_over()

    play(scenario)
    assert list(results) == [0]
    assert inner.lists == [["g.0/0/0", "g.0/1/0"], ["g.0/0/0"]]


def test_a_refused_round_reaches_every_episode(characters):
    class Refusing:
        async def generate(self, requests):
            raise EngineError("no")

    engine = LockstepEngine(Refusing())
    factory = ScriptedFactory([DONE])
    worker = RolloutWorker(
        engine=engine, factory=factory, tokenizer=characters, config=RolloutConfig(retries=0, max_tokens=8)
    )
    item = lease(3)
    worker.expect(item)
    group = play(lambda: worker.roll(item))
    assert [failure.reason for failure in group.failures] == ["engine"] * 3


def test_an_episode_nobody_expected_is_refused(characters):
    engine = LockstepEngine(ScriptedEngine(characters, {}))

    async def scenario():
        from windage.engines.protocol import GenerateRequest, Sampling

        with pytest.raises(EngineError, match="call expect"):
            await engine.generate(
                [GenerateRequest(request_id="g.0/0/0", prompt_ids=[1], sampling=Sampling(max_tokens=1))]
            )

    play(scenario)
