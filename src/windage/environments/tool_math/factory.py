"""ToolMath: makes environments and owns what they share: the sandbox and the judges."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from windage.environments.protocol import Message
from windage.environments.tool_math.config import ToolMathConfig
from windage.environments.tool_math.environment import ToolMathEnvironment
from windage.environments.tool_math.formats import format_of
from windage.environments.tool_math.judges import Judges
from windage.environments.tool_math.problem import Problem
from windage.environments.tool_math.sandbox import PythonSandbox
from windage.environments.tool_math.sources import open_sources

__all__ = ["ToolMath"]


class ToolMath:
    """An :class:`~windage.environments.protocol.EnvironmentFactory`. Close with :meth:`aclose` or ``async with``.

    ``logs``: folder for what the judges print; None drops it.
    """

    name = "tool_math"

    def __init__(self, config: ToolMathConfig, *, logs: Path | None = None) -> None:
        self._config = config
        self._format = format_of(config)
        self._sandbox = PythonSandbox(config.tool)
        self._judges = Judges(config.judges, seconds=config.reward_seconds, logs=logs)
        self.stop = tuple(self._format.stop)

    async def __aenter__(self) -> ToolMath:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def make(self) -> ToolMathEnvironment:
        """A fresh environment for one episode."""
        return ToolMathEnvironment(self._format, self._sandbox, self._judges, tool_seconds=self._config.tool_seconds)

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """The Python tool's schema where the format puts it into the chat template."""
        return tuple(self._format.tools)

    def demonstrations(self, count: int, *, seed: int) -> Sequence[Sequence[Message]]:
        """Solved problems of the training side: call, output, answer. Empty without a source that knows programs.

        They are drawn with a seed of their own, so that they are not simply the first training tasks.
        """
        known = [source for source in self._config.sources if source.has_programs]
        if not known:
            return []
        sources = itertools.cycle(open_sources(known))
        own_seed = zlib.crc32(f"demonstrations/{seed}".encode())
        problems = (next(sources).problem("train", index, seed=own_seed) for index in range(count))
        guesses = Random(own_seed)  # noqa: S311 - not a secret
        return [
            self._solved(problem, direct=guesses.random() < self._config.direct_share)
            for problem in problems
            if problem is not None
        ]

    async def aclose(self) -> None:
        """Stop sandbox and judges. Safe to call twice."""
        try:
            await self._sandbox.aclose()
        finally:
            await self._judges.aclose()

    def _solved(self, problem: Problem, *, direct: bool) -> tuple[Message, ...]:
        style = self._format
        if direct:
            opening = style.opening(problem.question, problem.program)
            return (*opening, Message(role="assistant", content=style.answer(problem.answer)))
        return (
            *style.opening(problem.question, problem.program),
            Message(role="assistant", content=style.call(problem.program)),
            style.observation(problem.answer, failed=False),
            Message(role="assistant", content=style.answer(problem.answer)),
        )
