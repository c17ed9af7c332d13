"""PlainFormat: ``12+34?`` → ``<12+34>`` → ``=46|`` → ``#46``, for tiny models with an alphabet of their own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from windage.environments.protocol import Message
from windage.environments.tool_math.format import Answer, Call

__all__ = ["PlainFormat"]

_CALL = re.compile(r"<([^<>]*)>\s*\Z")
_ANSWER = re.compile(r"#\s*([+-]?\d+)\s*\Z")
_NUMBER = re.compile(r"-?\d{1,20}\Z")


class PlainFormat:
    """Results that are not an integer of at most 20 digits, and errors, read ``=?|``: the alphabet has no letters."""

    stop: tuple[str, ...] = (">",)
    tools: Sequence[Mapping[str, Any]] = ()

    def opening(self, question: str, program: str) -> tuple[Message, ...]:
        """``12+34?``."""
        return (Message(role="user", content=f"{program or question}?"),)

    def read(self, text: str) -> Call | Answer | None:
        """A call or an answer ends the reply; what stands before it is ignored.

        >>> PlainFormat().read("<1+2>")
        Call(code='1+2', problem='')
        >>> PlainFormat().read("#3")
        Answer(text='3')
        """
        if call := _CALL.search(text):
            return Call(code=call[1])
        if answer := _ANSWER.search(text):
            return Answer(text=answer[1])
        return None

    def observation(self, output: str, *, failed: bool) -> Message:
        """``=46|``."""
        shown = output if not failed and _NUMBER.match(output) else "?"
        return Message(role="tool", content=f"={shown}|")

    def call(self, program: str) -> str:
        """``<12+34>``."""
        return f"<{program}>"

    def answer(self, text: str) -> str:
        """``#46``."""
        return f"#{text}"
