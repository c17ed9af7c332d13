"""The built-in generator: plain expressions and word problems around them."""

from __future__ import annotations

import random

from windage.environments.tool_math.config import ArithmeticSource
from windage.environments.tool_math.problem import Problem

__all__ = ["arithmetic_problem"]

_STORIES = {
    "+": (
        "A library owns {a} novels and {b} atlases. How many books is that together?",
        "Mira cycled {a} metres before lunch and {b} metres after it. How many metres did she cycle?",
        "A jar holds {a} beads. Someone adds {b} more. How many beads are in the jar now?",
    ),
    "-": (
        "A baker made {a} rolls and sold {b} of them. How many rolls are left (negative if too many were sold)?",
        "The score stood at {a} points, then {b} points were taken away. What is the score now?",
        "What is left of {a} litres after {b} litres were drained (negative if there was not enough)?",
    ),
    "*": (
        "A hall has {a} rows with {b} seats each. How many seats are there?",
        "Each of {a} crates holds {b} apples. How many apples is that?",
        "A pump moves {a} litres a minute. How many litres does it move in {b} minutes?",
    ),
}


def arithmetic_problem(source: ArithmeticSource, draw: random.Random) -> Problem:
    """One problem, drawn with ``draw``."""
    operator = draw.choice(source.operators)
    a, b = draw.randint(source.low, source.high), draw.randint(source.low, source.high)
    told = draw.random() < source.word_problems
    expression = f"{a}{operator}{b}"
    question = draw.choice(_STORIES[operator]).format(a=a, b=b) if told else expression
    value = {"+": a + b, "-": a - b, "*": a * b}[operator]
    return Problem(question=question, answer=str(value), expression=expression)
