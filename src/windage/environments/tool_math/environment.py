"""ToolMathEnvironment: one problem, any number of tool calls, one answer.

question ─► reply ─┬─ tool call ─► output as observation ─► reply …
                   └─ answer ─► reward, done
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import anyio

from windage.environments.protocol import Message, Reply, StepResult
from windage.environments.tool_math.formats import Answer, Format
from windage.errors import EnvironmentFailure, explain
from windage.records import StopReason, Task

__all__ = ["ToolMathEnvironment"]


class ToolMathEnvironment:
    """One episode at a time. ``tool`` runs code and returns what the model sees; ``score`` rewards an answer.

    Metrics: ``success``, ``tool_calls``, ``answered``.
    """

    def __init__(
        self,
        *,
        format: Format,  # noqa: A002 - the field's word
        tool: Callable[[str], Awaitable[str]],
        score: Callable[[Mapping[str, Any], str], Awaitable[float]],
        calls: int,
        tool_seconds: float,
    ) -> None:
        self._format = format
        self._tool = tool
        self._score = score
        self._limit = calls
        self._tool_seconds = tool_seconds
        self._task: Task | None = None
        self._calls = 0

    async def reset(self, task: Task) -> tuple[Message, ...]:
        """Put the question.

        Raises:
            EnvironmentFailure: the task is not one of this environment.
        """
        if not {"question", "answer"} <= set(task.data):
            raise EnvironmentFailure(
                explain(f"task {task.task_id} is not for tool_math", got=sorted(task.data), expected="question, answer")
            )
        self._task, self._calls = task, 0
        return self._format.opening(str(task.data["question"]))

    async def step(self, reply: Reply) -> StepResult:
        """Run the tool, or score the answer.

        Raises:
            EnvironmentFailure: the tool or the reward failed; the sample is invalid.
        """
        if self._task is None:
            raise EnvironmentFailure(explain("step without an episode", do="call reset first"))
        if reply.truncated:
            return self._end(stop_reason=StopReason.TRUNCATED)
        read = self._format.read(reply.text)
        if isinstance(read, Answer):
            reward = 0.0 if read.text is None else await self._score(self._task.data, read.text)
            return self._end(reward=reward, answered=read.text is not None)
        self._calls += 1
        if self._calls > self._limit:
            return self._end()
        output = read.fault if read.code is None else await self._tool(read.code)
        if self._tool_seconds:
            await anyio.sleep(self._tool_seconds)
        return StepResult(messages=(self._format.observation(output),))

    async def close(self) -> None:
        """Forget the episode."""
        self._task = None

    def _end(
        self, *, reward: float = 0.0, answered: bool = False, stop_reason: StopReason = StopReason.ENV_DONE
    ) -> StepResult:
        self._task = None
        metrics = {"success": float(reward >= 1.0), "tool_calls": float(self._calls), "answered": float(answered)}
        return StepResult(reward=reward, done=True, stop_reason=stop_reason, metrics=metrics)
