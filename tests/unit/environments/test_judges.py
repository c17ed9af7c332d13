"""Scoring: right is right in any notation; a late or dead judge makes the sample invalid, never worth 0 (trap 17)."""

from __future__ import annotations

import os
import signal

import anyio
import psutil
import pytest

from windage.environments.tool_math.failures import RewardError, RewardTimeout
from windage.environments.tool_math.judges import Judges
from windage.environments.tool_math.quick_verdict import quick_verdict

SCORER = {"family": "gcd", "settings": {}, "seed": 3, "index": 12}


@pytest.mark.parametrize(
    ("answer", "gold", "verdict"),
    [
        ("357", "357", True),
        (" $357$ ", "357", True),
        ("1,234,567", "1234567", True),
        ("+5", "5", True),
        ("-5", "5", False),
        ("007", "7", True),
        ("12,34", "1234", None),
        ("0.5", "1/2", None),
        ("357.0", "357", None),
        ("x", "y", None),
    ],
)
def test_quick_verdicts(answer, gold, verdict):
    assert quick_verdict(answer, gold) is verdict


def test_integers_need_no_process():
    async def run():
        judges = Judges(1, seconds=5.0)
        assert await judges.right("4", "4", {})
        assert not await judges.right("5", "4", {})
        assert not await judges.right("x" * 2000, "4", {})
        assert not psutil.Process().children()
        await judges.aclose()

    anyio.run(run)


@pytest.mark.process
def test_notations_families_deadlines_and_deaths():
    async def run():
        judges = Judges(1, seconds=60.0)
        try:
            pairs = [("\\frac{1}{2}", "0.5"), ("x+1", "1+x"), ("50\\%", "0.5"), ("\\{1,2\\}", "{1,2}")]
            assert [await judges.right(answer, gold, {}) for answer, gold in pairs] == [True] * 4
            assert [await judges.right(answer, "3/4", {}) for answer in ("3", "junk", "", "4/3")] == [False] * 4
            await a_late_judge_is_killed(judges)
            await a_dead_judge_is_replaced(judges)
        finally:
            await judges.aclose()
            await judges.aclose()
        assert not psutil.Process().children()

    async def a_late_judge_is_killed(judges):
        (first,) = psutil.Process().children()
        judges._seconds = 0.3
        with pytest.raises(RewardTimeout, match="ran out of time"):
            await judges.right("10^{10^{10}}", "1.5", {})
        assert not first.is_running()
        judges._seconds = 60.0
        assert await judges.right("1/4", "0.25", {})

    async def a_dead_judge_is_replaced(judges):
        (second,) = psutil.Process().children()
        os.kill(second.pid, signal.SIGKILL)
        with pytest.raises(RewardError, match="SIGKILL"):
            await judges.right("1/4", "0.25", {})
        assert await judges.right("1/4", "0.25", {})

    anyio.run(run)


@pytest.mark.process
def test_a_family_scores_its_own_entries():
    reasoning_gym = pytest.importorskip("reasoning_gym")
    entry = reasoning_gym.create_dataset("gcd", seed=3, size=2**20)[12]

    async def run():
        judges = Judges(1, seconds=120.0)
        try:
            right = await judges.right(f"{entry['answer']} ", str(entry["answer"]), SCORER)
            wrong = await judges.right("no", str(entry["answer"]), SCORER)
        finally:
            await judges.aclose()
        return right, wrong

    assert anyio.run(run) == (True, False)
