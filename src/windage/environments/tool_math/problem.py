"""Problem: a question, its answer, and what it takes to score one."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

__all__ = ["Problem", "ProblemSource", "Split", "split_of"]

Split = Literal["train", "held_out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """``program`` is Python that prints the answer (demonstrations need it); ``scorer`` names how to judge.

    ``scorer`` is empty for math-verify, or holds what regenerates a reasoning-gym entry.
    """

    question: str
    answer: str
    program: str = ""
    scorer: Mapping[str, Any] = field(default_factory=dict[str, Any])


class ProblemSource(Protocol):
    """Problems by index: ``problem`` is a pure function of its arguments and of the source's settings."""

    name: str
    size: int | None
    """Distinct training problems; None when there is no end."""

    def problem(self, split: Split, index: int, *, seed: int) -> Problem:
        """Problem ``index`` of ``split``."""
        ...


def split_of(question: str, *, held_out_share: float = 0.125) -> Split:
    """The side on which a question falls: by its text alone, so that no seed can leak it into training.

    >>> split_of("1+1?") == split_of("1+1?")
    True
    """
    return "held_out" if zlib.crc32(question.encode()) < held_out_share * 2**32 else "train"
