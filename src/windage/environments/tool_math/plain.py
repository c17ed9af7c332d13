"""The plain format, for character models: ``12+345?`` · ``<12+345>`` · ``=357|`` · ``#357``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from windage.environments.protocol import Message
from windage.environments.tool_math.formats import Answer, Call
from windage.environments.tool_math.problem import Problem

__all__ = ["PlainFormat"]

_CALL = re.compile(r"<([^<>]*)>")
_ANSWER = re.compile(r"#(-?[0-9]+)")


class PlainFormat:
    """One symbol a mark, no system prompt, no roles."""

    stop: tuple[str, ...] = (">",)
    tools: Sequence[Mapping[str, Any]] = ()

    def opening(self, question: str) -> tuple[Message, ...]:
        """``12+345?``."""
        return (Message(role="user", content=f"{question}?"),)

    def read(self, text: str) -> Call | Answer:
        """``<…>`` calls, ``#…`` answers; anything else is a final reply without an answer."""
        if call := _CALL.fullmatch(text):
            return Call(code=call[1])
        if "<" in text and text.endswith(">"):
            return Call(code=None)
        answer = _ANSWER.fullmatch(text)
        return Answer(text=answer[1] if answer else None)

    def observation(self, output: str) -> Message:
        """``=357|``; ``=|`` says that the call was no good."""
        return Message(role="tool", content=f"={output}|")

    def demonstrate(self, problem: Problem, output: str | None) -> list[Message]:
        """Question, call, result, answer; or question and answer."""
        opening = list(self.opening(problem.question))
        answer = Message(role="assistant", content=f"#{problem.answer}")
        if output is None or problem.expression is None:
            return [*opening, answer]
        call = Message(role="assistant", content=f"<{problem.expression}>")
        return [*opening, call, self.observation(output), answer]
