"""Problems drawn at random, on the right side of the split: redraw until the question falls there."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from windage.environments.tool_math.problem import Problem, Split, split_of
from windage.errors import DataError, explain

__all__ = ["drawn"]

_DRAWS = 1000


def drawn(draw: Callable[[Random], Problem], *, label: str, split: Split, index: int, seed: int) -> Problem:
    """The first problem of the stream ``(label, split, index, seed)`` whose question belongs to ``split``.

    Raises:
        DataError: none of 1000 draws does: the settings allow too few different questions.
    """
    random = Random(f"{label}/{split}/{index}/{seed}")  # noqa: S311 - problems, not secrets
    for _ in range(_DRAWS):
        problem = draw(random)
        if split_of(problem.question) == split:
            return problem
    raise DataError(
        explain(
            f"source {label} cannot fill the split {split}",
            got=f"{_DRAWS} draws without a question of that side",
            do="allow larger numbers, more operators or a family with more questions",
        )
    )
