"""Format: how a conversation spells question, tool call, observation and answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from windage.environments.protocol import Message

__all__ = ["Answer", "Call", "Format"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The model calls the tool. ``problem`` says why the call cannot be run; the model reads it."""

    code: str
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The model's final answer, as text."""

    text: str


class Format(Protocol):
    """A pair of directions: text to meaning, and meaning to text. Stateless."""

    stop: tuple[str, ...]
    """Strings that end a turn besides the end-of-turn token."""

    tools: Sequence[Mapping[str, Any]]
    """Schemas for the chat template."""

    def opening(self, question: str, program: str) -> tuple[Message, ...]:
        """The first messages."""
        ...

    def read(self, text: str) -> Call | Answer | None:
        """What a reply means; None when it is neither a call nor an answer."""
        ...

    def observation(self, output: str, *, failed: bool) -> Message:
        """The tool's output, as the model reads it."""
        ...

    def call(self, program: str) -> str:
        """A reply that calls the tool (for demonstrations)."""
        ...

    def answer(self, text: str) -> str:
        """A reply that answers (for demonstrations)."""
        ...
