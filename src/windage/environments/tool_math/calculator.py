"""The plain format's tool: integers, ``+``, ``-``, ``*``, evaluated in process by a parser of its own."""

from __future__ import annotations

import re

__all__ = ["calculate"]

_EXPRESSION = re.compile(r"-?[0-9]+(?:[+*-]-?[0-9]+)*")
_TERM = re.compile(r"([+*-]?)(-?[0-9]+)")
_LONGEST_INPUT = 64


def calculate(expression: str, *, longest: int = 12) -> str | None:
    """Value of ``expression`` in at most ``longest`` characters; None when it is malformed or too long.

    >>> calculate("2+3*-4")
    '-10'
    >>> calculate("2**9") is None
    True
    """
    if len(expression) > _LONGEST_INPUT or not _EXPRESSION.fullmatch(expression):
        return None
    total, product = 0, 0
    for operator, number in _TERM.findall(expression):
        if operator == "*":
            product *= int(number)
        else:
            total, product = total + product, int(number) * (-1 if operator == "-" else 1)
    value = str(total + product)
    return value if len(value) <= longest else None
