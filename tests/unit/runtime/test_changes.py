"""Waiting for a predicate: no lost wake-up, and a deadline that names the culprit."""

from __future__ import annotations

import anyio
import pytest
import trio
import trio.testing

from windage.errors import DeadlineExceeded
from windage.runtime.changes import Changes
from windage.runtime.stopwatch import Stopwatch


def play(scenario):
    trio.run(scenario, clock=trio.testing.MockClock(autojump_threshold=0))


def test_every_waiter_wakes_and_tests_again():
    async def scenario():
        changes, value, woken = Changes(), 0, []

        async def wait_for(target):
            await changes.until(lambda: value >= target, awaiting=lambda: str(target), seconds=100)
            woken.append(target)

        async with anyio.create_task_group() as tasks:
            for target in (3, 1, 2):
                tasks.start_soon(wait_for, target)
            for _ in range(3):
                await anyio.sleep(1)
                value += 1
                changes.notify()
        assert woken == [1, 2, 3]

    play(scenario)


def test_true_at_once_returns_without_a_notification():
    async def scenario():
        await Changes().until(lambda: True, awaiting=lambda: "nothing", seconds=1)

    play(scenario)


def test_deadline_says_for_what_and_how_long():
    async def scenario():
        with pytest.raises(DeadlineExceeded, match="waited 60 s for batch 3; oldest in flight: g17"):
            await Changes().until(lambda: False, awaiting=lambda: "batch 3; oldest in flight: g17", seconds=60)

    play(scenario)


def test_stopwatch_adds_up_laps_of_one_name():
    async def scenario():
        clock = Stopwatch()
        await anyio.sleep(2)
        assert clock.lap("wait") == pytest.approx(2)
        await anyio.sleep(3)
        clock.lap("train")
        await anyio.sleep(1)
        clock.lap("wait")
        assert clock.laps == pytest.approx({"wait": 3, "train": 3})

    play(scenario)
