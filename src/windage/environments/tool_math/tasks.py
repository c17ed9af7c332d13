"""ToolMathTasks: problems of any source as tasks, split by a hash of their text."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from typing import Literal

from windage.environments.tool_math.arithmetic import arithmetic_problem
from windage.environments.tool_math.config import ArithmeticSource, ToolMathConfig
from windage.environments.tool_math.problem import Problem, generator, is_held_out
from windage.errors import DataError, explain
from windage.records import Task

__all__ = ["ToolMathTasks"]

_TRIES = 100_000
"""Draws in a row without a usable problem after which the source counts as exhausted."""

Split = Literal["train", "held_out"]


class ToolMathTasks:
    """The TaskSource of ``tool_math``. Ids and order depend on ``(split, seed)`` only; ``train`` starts anywhere.

    Raises:
        DataError: the file cannot be read, or a split has no problem.
    """

    def __init__(self, config: ToolMathConfig, *, seed: int, group_size: int) -> None:
        self.name = f"tool_math/{config.source.name}"
        self._share = config.held_out_share
        self._seed = seed
        self._group_size = group_size
        self._draw = drawer(config)

    def __len__(self) -> int:
        """Endless."""
        return sys.maxsize

    def train(self, *, start: int = 0) -> Iterator[Task]:
        """Training tasks from index ``start`` on."""
        for index in itertools.count(start):
            yield self._task("train", index, self.problem("train", index))

    def held_out(self, count: int) -> list[Task]:
        """The first ``count`` evaluation tasks, all different; fewer when the source has no more."""
        found: dict[str, Problem] = {}
        misses, index = 0, 0
        while len(found) < count and misses < _TRIES:
            problem = self._draw("held_out", self._seed, index)
            index += 1
            if is_held_out(problem.question, self._share) and problem.question not in found:
                found[problem.question] = problem
                misses = 0
            else:
                misses += 1
        if count and not found:
            raise DataError(
                explain("no problem falls into the held-out share", got=self._share, do="raise held_out_share")
            )
        return [self._task("held_out", index, problem) for index, problem in enumerate(found.values())]

    def problem(self, split: Split, index: int) -> Problem:
        """Problem ``index`` of the training stream: the first draw of its own that is not held out."""
        for attempt in range(_TRIES):
            problem = self._draw(split, self._seed, index, attempt)
            if not is_held_out(problem.question, self._share):
                return problem
        raise DataError(explain("every problem falls into the held-out share", do="lower held_out_share"))

    def _task(self, split: Split, index: int, problem: Problem) -> Task:
        return Task(
            task_id=f"{self.name}/{split}/{index}",
            source=self.name,
            data={"question": problem.question, "answer": problem.answer, **problem.more},
            group_size=self._group_size,
            seed=generator("task", self._seed, split, index).getrandbits(63),
        )


def drawer(config: ToolMathConfig) -> Callable[..., Problem]:
    """A function from any key to a problem of ``config.source``."""
    source = config.source
    assert isinstance(source, ArithmeticSource)
    return lambda *key: arithmetic_problem(source, generator("arithmetic", *key))
