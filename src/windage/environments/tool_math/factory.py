"""ToolMath: the EnvironmentFactory; owns the tool and reward workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from windage.environments.protocol import Environment, Message
from windage.environments.tool_math.calculator import calculate
from windage.environments.tool_math.config import ToolMathConfig
from windage.environments.tool_math.environment import ToolMathEnvironment
from windage.environments.tool_math.plain import PlainFormat
from windage.environments.tool_math.problem import generator
from windage.environments.tool_math.tasks import ToolMathTasks

__all__ = ["ToolMath"]


class ToolMath:
    """Environments that share one format, one tool and one scorer. ``logs`` is where worker processes write."""

    name = "tool_math"

    def __init__(self, config: ToolMathConfig, *, logs: Path) -> None:
        self._config = config
        self._logs = logs
        self._format = PlainFormat()
        self.stop = self._format.stop

    def make(self) -> Environment:
        """A fresh environment for one episode."""
        return ToolMathEnvironment(
            format=self._format,
            tool=self._tool,
            score=self._score,
            calls=self._config.tool.calls,
            tool_seconds=self._config.tool_seconds,
        )

    def demonstrations(self, count: int, *, seed: int) -> Sequence[Sequence[Message]]:
        """``count`` solved training problems; a share of ``direct_share`` answers without the tool."""
        tasks = ToolMathTasks(self._config, seed=generator("demonstrations", seed).getrandbits(62), group_size=1)
        shown: list[list[Message]] = []
        for index in range(count):
            problem = tasks.problem("train", index)
            direct = generator("direct", seed, index).random() < self._config.direct_share
            shown.append(self._format.demonstrate(problem, None if direct else calculate(problem.expression or "")))
        return shown

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """The tool's JSON schema for chat templates; empty in the plain format."""
        return self._format.tools

    async def aclose(self) -> None:
        """Stop the shared workers."""

    async def _tool(self, code: str) -> str:
        return calculate(code) or ""

    async def _score(self, data: Mapping[str, Any], answer: str) -> float:
        return float(answer == data["answer"])
