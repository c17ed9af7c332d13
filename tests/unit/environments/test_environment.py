"""One episode of tool_math: calls, answers, rewards, and what makes a sample invalid."""

from __future__ import annotations

import anyio
import pytest
import trio
import trio.testing

from windage.environments.protocol import Reply
from windage.environments.tool_math.environment import ToolMathEnvironment
from windage.environments.tool_math.failures import RewardTimeout, ToolBroken
from windage.environments.tool_math.plain_format import PlainFormat
from windage.environments.tool_math.sandbox import ToolOutput
from windage.environments.tool_math.tool_call_format import ToolCallFormat
from windage.errors import DataError
from windage.records import StopReason, Task

TASK = Task(task_id="t", source="s", data={"question": "What is 1+2?", "program": "1+2", "answer": "3"})


class Sandbox:
    def __init__(self, output="3", *, error=None):
        self.output, self.error, self.ran = output, error, []

    async def run(self, code):
        self.ran.append(code)
        if self.error:
            raise self.error
        return self.output if isinstance(self.output, ToolOutput) else ToolOutput(text=self.output)


class Judges:
    def __init__(self, *, error=None):
        self.error, self.asked = error, []

    async def right(self, answer, gold, scorer):
        self.asked.append((answer, gold, scorer))
        if self.error:
            raise self.error
        return answer == gold


def play(*texts, style=None, sandbox=None, judges=None, truncated=False):
    results = []

    async def scenario():
        environment = ToolMathEnvironment(style or PlainFormat(), sandbox or Sandbox(), judges or Judges())
        results.append(await environment.reset(TASK))
        for turn, text in enumerate(texts):
            last = turn == len(texts) - 1
            results.append(await environment.step(Reply(turn=turn, text=text, truncated=truncated and last)))
        await environment.close()
        await environment.close()

    trio.run(scenario)
    return results


def test_a_call_then_the_right_answer():
    sandbox, judges = Sandbox(), Judges()
    opening, called, done = play("<1+2>", "#3", sandbox=sandbox, judges=judges)
    assert [m.content for m in opening] == ["1+2?"]
    assert sandbox.ran == ["1+2"]
    assert [m.content for m in called.messages] == ["=3|"]
    assert (called.done, called.reward) == (False, 0.0)
    assert (done.done, done.reward, done.stop_reason) == (True, 1.0, StopReason.EOS)
    assert done.metrics == {"success": 1.0, "answered": 1.0, "tool_calls": 1.0, "tool_errors": 0.0}
    assert judges.asked == [("3", "3", {})]


def test_a_wrong_answer_and_no_answer_earn_nothing():
    *_, wrong = play("#4")
    assert (wrong.done, wrong.reward, wrong.stop_reason) == (True, 0.0, StopReason.EOS)
    assert (wrong.metrics["answered"], wrong.metrics["success"]) == (1.0, 0.0)
    *_, lost = play("123")
    assert (lost.done, lost.reward, lost.stop_reason) == (True, 0.0, StopReason.ENV_DONE)
    assert lost.metrics["answered"] == 0.0


def test_a_failed_call_goes_on_and_is_counted():
    sandbox = Sandbox(ToolOutput(text="ZeroDivisionError", failed=True))
    *_, called = play("<1/0>", sandbox=sandbox)
    assert not called.done
    assert (called.metrics["tool_calls"], called.metrics["tool_errors"]) == (1.0, 1.0)


def test_a_malformed_call_is_not_run():
    sandbox = Sandbox()
    *_, called = play("<tool_call>{</tool_call>", style=ToolCallFormat(), sandbox=sandbox)
    assert sandbox.ran == []
    assert called.messages[0].content.startswith("Error: the tool call is malformed")
    assert called.metrics["tool_errors"] == 1.0


def test_a_truncated_call_is_not_run_and_a_whole_answer_counts():
    sandbox = Sandbox()
    *_, cut = play("<1+2>", sandbox=sandbox, truncated=True)
    assert sandbox.ran == []
    assert (cut.done, cut.stop_reason) == (True, StopReason.TRUNCATED)
    *_, whole = play("#3", truncated=True)
    assert whole.reward == 1.0


@pytest.mark.parametrize(
    ("text", "settings", "error"),
    [
        ("<1+2>", {"sandbox": Sandbox(error=ToolBroken("gone"))}, ToolBroken),
        ("#3", {"judges": Judges(error=RewardTimeout("late"))}, RewardTimeout),
    ],
)
def test_failures_of_the_machinery_are_raised_never_scored(text, settings, error):
    with pytest.raises(error):
        play(text, **settings)


def test_tool_latency_is_waited_for():
    async def scenario():
        environment = ToolMathEnvironment(PlainFormat(), Sandbox(), Judges(), tool_seconds=7.0)
        await environment.reset(TASK)
        before = anyio.current_time()
        await environment.step(Reply(turn=0, text="<1+2>"))
        assert anyio.current_time() - before == pytest.approx(7.0)

    trio.run(scenario, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_foreign_task_is_refused():
    async def scenario():
        environment = ToolMathEnvironment(PlainFormat(), Sandbox(), Judges())
        await environment.reset(Task(task_id="t", source="s", data={"prompt": "?"}))

    with pytest.raises(DataError, match="not of tool_math"):
        trio.run(scenario)
