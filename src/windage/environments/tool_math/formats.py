"""Format: how a problem is put, how a reply is read, how a tool's output is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from windage.environments.protocol import Message
from windage.environments.tool_math.problem import Problem

__all__ = ["Answer", "Call", "Format"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A tool call. ``code`` is None when the call is malformed; ``fault`` then says what is wrong."""

    code: str | None
    fault: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A final reply. ``text`` is None when it holds no answer."""

    text: str | None


class Format(Protocol):
    """One way of talking about a problem."""

    stop: tuple[str, ...]
    tools: Sequence[Mapping[str, Any]]

    def opening(self, question: str) -> tuple[Message, ...]:
        """The messages that put the question."""
        ...

    def read(self, text: str) -> Call | Answer:
        """What the reply wants."""
        ...

    def observation(self, output: str) -> Message:
        """The message that shows a tool's output."""
        ...

    def demonstrate(self, problem: Problem, output: str | None) -> list[Message]:
        """A solved conversation; ``output`` is what the tool would say, None to answer without it."""
        ...
