"""Problem: a question and its answer, before they become a task; and the hash that keeps the splits apart."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Problem", "generator", "is_held_out"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """``expression`` solves it with a calculator, where one is known. ``more`` is what its scorer needs besides."""

    question: str
    answer: str
    expression: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])


def is_held_out(question: str, share: float) -> bool:
    """True for the reserved share of all questions: a pure function of the text, the same for every seed."""
    return _number("split", question) < share * 2**64


def generator(*key: object) -> random.Random:
    """A random generator that depends on ``key`` only."""
    return random.Random(_number(*key))  # noqa: S311 - problems, not secrets


def _number(*key: object) -> int:
    digest = hashlib.blake2b("/".join(map(str, key)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
