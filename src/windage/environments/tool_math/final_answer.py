r"""The final answer in a chat reply: ``\boxed{…}``, ``#### …``, ``<answer>…</answer>``, "answer: …", a last number."""

from __future__ import annotations

import re

__all__ = ["final_answer"]

_BOXED = re.compile(r"\\boxed\s*\{")
_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_MARKED = re.compile(r"####\s*(.+)")
_SAID = re.compile(r"\banswer\b(?:\s+is)?\s*[:=]?\s*(.+)", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?")


def final_answer(text: str) -> str | None:
    r"""The answer a reply settles on, or None when it states none. The last one of the most explicit kind counts.

    >>> final_answer(r"So it is \boxed{\frac{1}{2}}.")
    '\\frac{1}{2}'
    >>> final_answer("The answer is 42.")
    '42'
    >>> final_answer("I do not know")
    """
    boxed = _boxed(text)
    if boxed is not None:
        return boxed.strip()
    for pattern in (_TAGGED, _MARKED, _SAID):
        found = pattern.findall(text)
        if found:
            return found[-1].strip().strip("*").strip().removesuffix(".").strip()
    numbers = _NUMBER.findall(text)
    return numbers[-1] if numbers else None


def _boxed(text: str) -> str | None:
    """Content of the last box whose braces close."""
    for start in reversed([match.end() for match in _BOXED.finditer(text)]):
        depth = 1
        for at in range(start, len(text)):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            if depth == 0:
                return text[start:at]
    return None
