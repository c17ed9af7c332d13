"""Word problems: short stories with an integer answer, and the Python that solves them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from windage.environments.tool_math.config import WordProblemSource
from windage.environments.tool_math.drawn import drawn
from windage.environments.tool_math.problem import Problem, Split

__all__ = ["WordProblems"]

_NAMES = ("Ada", "Bela", "Chidi", "Dara", "Emre", "Fatou", "Goran", "Hana", "Ines", "Jun", "Kofi", "Lena")
_THINGS = ("apples", "pencils", "stamps", "marbles", "stickers", "shells", "books", "cards")

Story = Callable[[Random, int], tuple[str, str]]


class WordProblems:
    """Draws a story, then its numbers."""

    size: int | None = None

    def __init__(self, config: WordProblemSource, *, label: str = "word_problems") -> None:
        self.label = label
        self._largest = config.largest

    def problem(self, split: Split, index: int, *, seed: int) -> Problem:
        """See :class:`~windage.environments.tool_math.problem.ProblemSource`."""

        def draw(random: Random) -> Problem:
            question, program = random.choice(_STORIES)(random, self._largest)
            return Problem(key=str(index), question=question, answer=str(_value(program)), program=program)

        return drawn(draw, label=self.label, split=split, index=index, seed=seed)


def _value(program: str) -> int:
    """Value of one of this file's own programs (integers, + - * // and parentheses)."""
    return int(eval(program, {"__builtins__": {}}))  # noqa: S307 - written below, never by a model


def _sharing(random: Random, largest: int) -> tuple[str, str]:
    friends, each, left = random.randint(2, 9), random.randint(1, largest), random.randint(0, 9)
    total = friends * each + left
    name, thing = random.choice(_NAMES), random.choice(_THINGS)
    question = (
        f"{name} has {total} {thing}, keeps {left} and shares the rest equally among {friends} friends. "
        f"How many {thing} does each friend get?"
    )
    return question, f"({total} - {left}) // {friends}"


def _shopping(random: Random, largest: int) -> tuple[str, str]:
    count, price, extra = (random.randint(2, largest) for _ in range(3))
    name, thing = random.choice(_NAMES), random.choice(_THINGS)
    question = (
        f"{name} buys {count} {thing} for {price} coins each and pays {extra} coins for delivery. "
        f"How many coins does {name} spend?"
    )
    return question, f"{count} * {price} + {extra}"


def _collecting(random: Random, largest: int) -> tuple[str, str]:
    start, found, lost = random.randint(1, largest), random.randint(1, largest), random.randint(1, largest)
    lost = min(lost, start + found)
    name, thing = random.choice(_NAMES), random.choice(_THINGS)
    question = f"{name} had {start} {thing}, found {found} more and lost {lost}. How many {thing} are left?"
    return question, f"{start} + {found} - {lost}"


def _walking(random: Random, largest: int) -> tuple[str, str]:
    days, metres, rest = random.randint(2, 30), random.randint(2, largest), random.randint(1, 2)
    name = random.choice(_NAMES)
    question = (
        f"{name} walks {metres} laps a day for {days} days, but rests on {min(rest, days - 1)} of them. "
        f"How many laps is that?"
    )
    return question, f"{metres} * ({days} - {min(rest, days - 1)})"


def _saving(random: Random, largest: int) -> tuple[str, str]:
    week, weeks, spent = random.randint(2, largest), random.randint(2, 52), random.randint(1, largest)
    name = random.choice(_NAMES)
    question = (
        f"{name} saves {week} coins a week. After {weeks} weeks, {name} spends {spent} coins. "
        f"How many coins remain? A debt is a negative number."
    )
    return question, f"{week} * {weeks} - {spent}"


def _rows(random: Random, largest: int) -> tuple[str, str]:
    rows, seats, shut = random.randint(2, largest), random.randint(2, largest), random.randint(1, 9)
    question = f"A hall has {rows} rows of {seats} seats; {min(shut, rows)} rows are closed. How many seats are open?"
    return question, f"({rows} - {min(shut, rows)}) * {seats}"


def _ages(random: Random, largest: int) -> tuple[str, str]:
    young, times, years = random.randint(1, largest), random.randint(2, 5), random.randint(1, 20)
    older, younger = random.sample(_NAMES, 2)
    question = (
        f"{younger} is {young} years old, and {older} is {times} times as old. "
        f"How old will {older} be in {years} years?"
    )
    return question, f"{young} * {times} + {years}"


def _boxes(random: Random, largest: int) -> tuple[str, str]:
    full, size, loose = random.randint(2, largest), random.randint(2, 24), random.randint(0, 23)
    thing = random.choice(_THINGS)
    total = full * size + min(loose, size - 1)
    return f"How many full boxes of {size} can be packed from {total} {thing}?", f"{total} // {size}"


_STORIES: tuple[Story, ...] = (_sharing, _shopping, _collecting, _walking, _saving, _rows, _ages, _boxes)
