"""ToolMathEnvironment: one problem, tool calls, one final answer.

reply ─► call    ─► sandbox ─► observation, and the episode goes on
      ─► answer  ─► judges  ─► reward 1 or 0, end (eos)
      ─► neither            ─► reward 0, end (env_done)
"""

from __future__ import annotations

from collections.abc import Mapping

import anyio

from windage.environments.protocol import Message, Reply, StepResult
from windage.environments.tool_math.format import Answer, Call, Format
from windage.environments.tool_math.judges import Judges
from windage.environments.tool_math.sandbox import PythonSandbox, ToolOutput
from windage.errors import DataError, explain
from windage.records import StopReason, Task

__all__ = ["ToolMathEnvironment"]


class ToolMathEnvironment:
    """An :class:`~windage.environments.protocol.Environment`. Owns nothing: sandbox and judges are the factory's.

    Metrics of an episode: ``success``, ``answered`` (0 or 1), ``tool_calls``, ``tool_errors``.
    """

    def __init__(self, style: Format, sandbox: PythonSandbox, judges: Judges, *, tool_seconds: float = 0.0) -> None:
        self._format = style
        self._sandbox = sandbox
        self._judges = judges
        self._tool_seconds = tool_seconds
        self._task: Task | None = None
        self._calls = 0
        self._errors = 0

    async def reset(self, task: Task) -> tuple[Message, ...]:
        """See :class:`~windage.environments.protocol.Environment`."""
        missing = {"question", "answer"} - set(task.data)
        if missing:
            raise DataError(
                explain(f"task {task.task_id} is not of tool_math", got=sorted(task.data), expected="question, answer")
            )
        self._task, self._calls, self._errors = task, 0, 0
        return self._format.opening(task.data["question"], task.data.get("program", ""))

    async def step(self, reply: Reply) -> StepResult:
        """See :class:`~windage.environments.protocol.Environment`."""
        said = self._format.read(reply.text)
        if reply.truncated and not isinstance(said, Answer):
            return StepResult(done=True, stop_reason=StopReason.TRUNCATED, metrics=self._metrics())
        match said:
            case Call():
                return await self._called(said)
            case Answer():
                return await self._answered(said)
            case None:
                return StepResult(done=True, metrics=self._metrics())

    async def close(self) -> None:
        """Nothing to release."""

    async def _called(self, call: Call) -> StepResult:
        if self._tool_seconds:
            await anyio.sleep(self._tool_seconds)
        output = ToolOutput(text=call.problem, failed=True) if call.problem else await self._sandbox.run(call.code)
        self._calls += 1
        self._errors += output.failed
        message = self._format.observation(output.text, failed=output.failed)
        return StepResult(messages=(message,), metrics=self._metrics())

    async def _answered(self, answer: Answer) -> StepResult:
        assert self._task is not None
        data = self._task.data
        right = await self._judges.right(answer.text, data["answer"], data.get("scorer", {}))
        return StepResult(
            reward=float(right),
            done=True,
            stop_reason=StopReason.EOS,
            metrics=self._metrics(success=float(right), answered=1.0),
        )

    def _metrics(self, *, success: float = 0.0, answered: float = 0.0) -> Mapping[str, float]:
        return {
            "success": success,
            "answered": answered,
            "tool_calls": float(self._calls),
            "tool_errors": float(self._errors),
        }
