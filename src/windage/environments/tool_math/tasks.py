"""ToolMathTasks: problems as tasks, several sources interleaved by their shares."""

from __future__ import annotations

import hashlib
import itertools
import sys
from collections.abc import Iterator, Sequence

from windage.environments.tool_math.config import ToolMathConfig
from windage.environments.tool_math.problem import Problem, ProblemSource, Split
from windage.environments.tool_math.sources import open_sources
from windage.errors import DataError, explain
from windage.records import Task

__all__ = ["ToolMathTasks"]

_REPEATS = 2000


class ToolMathTasks:
    """A :class:`~windage.environments.protocol.TaskSource`. Order, ids and seeds depend on (split, seed) alone.

    Task ``i`` of a mixture comes from the source in place ``i mod Σshare`` of a fixed round, so any start is O(1).
    """

    name = "tool_math"

    def __init__(self, config: ToolMathConfig, *, seed: int, group_size: int) -> None:
        self._sources = open_sources(config.sources)
        self._shares = [source.share for source in config.sources]
        self._round = _interleaved(self._shares)
        self._seed = seed
        self._group_size = group_size

    def __len__(self) -> int:
        sizes = [source.size for source in self._sources]
        return sys.maxsize if None in sizes else sum(size for size in sizes if size is not None)

    def train(self, *, start: int = 0) -> Iterator[Task]:
        """Training tasks from index ``start`` on, without end; a file's epoch is part of its ids."""
        for index in itertools.count(start):
            source, own = self._place(index)
            problem = source.problem("train", own, seed=self._seed)
            assert problem is not None
            yield self._task(source, problem, "train")

    def held_out(self, count: int) -> list[Task]:
        """The first ``count`` evaluation tasks: distinct questions, none of which trains.

        Raises:
            DataError: there are fewer.
        """
        tasks: list[Task] = []
        seen: set[str] = set()
        repeats = 0
        for index in itertools.count():
            if len(tasks) == count:
                return tasks
            source, own = self._place(index)
            problem = source.problem("held_out", own, seed=self._seed)
            if problem is None or problem.question in seen:
                repeats += 1
                if repeats > _REPEATS:
                    break
                continue
            repeats = 0
            seen.add(problem.question)
            tasks.append(self._task(source, problem, "held_out"))
        raise DataError(
            explain(
                "too few held-out questions",
                got=len(tasks),
                expected=f"{count} (evaluation.tasks)",
                do="evaluate fewer tasks, or allow more different questions",
            )
        )

    def _place(self, index: int) -> tuple[ProblemSource, int]:
        lap, place = divmod(index, len(self._round))
        which = self._round[place]
        return self._sources[which], lap * self._shares[which] + self._round[:place].count(which)

    def _task(self, source: ProblemSource, problem: Problem, split: Split) -> Task:
        task_id = f"{source.label}/{split}/{problem.key}"
        digest = hashlib.blake2b(f"{self._seed}/{task_id}".encode(), digest_size=4).digest()
        return Task(
            task_id=task_id,
            source=source.label,
            data={
                "question": problem.question,
                "answer": problem.answer,
                "program": problem.program,
                "scorer": dict(problem.scorer),
            },
            group_size=self._group_size,
            seed=int.from_bytes(digest, "little"),
        )


def _interleaved(shares: Sequence[int]) -> list[int]:
    """Source numbers of one round, each ``share`` times and evenly spread.

    >>> _interleaved([2, 1])
    [0, 1, 0]
    """
    places = [((turn + 0.5) / share, which) for which, share in enumerate(shares) for turn in range(share)]
    return [which for _, which in sorted(places)]
