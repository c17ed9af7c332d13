"""Arithmetic: ``a op b`` without end."""

from __future__ import annotations

from random import Random

from windage.environments.tool_math.config import ArithmeticSource
from windage.environments.tool_math.drawn import drawn
from windage.environments.tool_math.problem import Problem, Split

__all__ = ["Arithmetic"]


class Arithmetic:
    """Draws an operator, then both operands: first how many digits, then the number."""

    size: int | None = None

    def __init__(self, config: ArithmeticSource, *, label: str = "arithmetic") -> None:
        self.label = label
        self._config = config

    def problem(self, split: Split, index: int, *, seed: int) -> Problem:
        """See :class:`~windage.environments.tool_math.problem.ProblemSource`."""

        def draw(random: Random) -> Problem:
            operator = random.choice(self._config.operators)
            left, right = self._operand(random), self._operand(random)
            value = {"+": left + right, "-": left - right, "*": left * right}[operator]
            expression = f"{left}{operator}{right}"
            return Problem(key=str(index), question=f"What is {expression}?", answer=str(value), program=expression)

        return drawn(draw, label=self.label, split=split, index=index, seed=seed)

    def _operand(self, random: Random) -> int:
        digits = random.randint(self._config.min_digits, self._config.max_digits)
        return random.randrange(10 ** (digits - 1) if digits > 1 else 0, 10**digits)
