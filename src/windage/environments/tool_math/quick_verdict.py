"""Verdicts that need no mathematics: equal texts, and integers in plain digits."""

from __future__ import annotations

import re

__all__ = ["quick_verdict"]

_INTEGER = re.compile(r"[+-]?\d{1,1000}\Z")
_GROUPED = re.compile(r"(?<=\d),(?=\d{3}(?:\D|\Z))")


def quick_verdict(answer: str, gold: str) -> bool | None:
    """True or False where it is certain, None where an answer needs a judge.

    >>> quick_verdict("1,024", "1024"), quick_verdict("7", "8"), quick_verdict("1/2", "0.5")
    (True, False, None)
    """
    said, right = _normal(answer), _normal(gold)
    if said == right:
        return True
    if _INTEGER.match(said) and _INTEGER.match(right):
        return int(said) == int(right)
    return None


def _normal(text: str) -> str:
    return _GROUPED.sub("", text.strip().strip("$").strip())
