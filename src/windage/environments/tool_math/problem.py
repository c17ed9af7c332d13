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
    """``key`` names it within its source and split. ``program`` is Python whose value is the answer (demonstrations
    need it). ``scorer`` is empty for math-verify, or what regenerates a reasoning-gym entry.
    """

    key: str
    question: str
    answer: str
    program: str = ""
    scorer: Mapping[str, Any] = field(default_factory=dict[str, Any])


class ProblemSource(Protocol):
    """Problems by index: a pure function of split, index, seed and the source's settings."""

    @property
    def label(self) -> str:
        """Name in task ids and per-source counters."""
        ...

    @property
    def size(self) -> int | None:
        """Distinct training problems; None when there is no end."""
        ...

    def problem(self, split: Split, index: int, *, seed: int) -> Problem | None:
        """Problem ``index`` of ``split``; None past the end of the held-out ones."""
        ...


def split_of(question: str, *, held_out_share: float = 0.125) -> Split:
    """The side on which a question falls: by its text alone, so that no seed can leak it into training.

    >>> split_of("1+1?") == split_of("1+1?")
    True
    """
    return "held_out" if zlib.crc32(question.encode()) < held_out_share * 2**32 else "train"
