"""Environment: turns a task into messages, and a reply into the next observation or the end with a reward."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from windage.records import StopReason, Task

__all__ = ["Environment", "EnvironmentFactory", "Message", "Reply", "StepResult", "TaskSource"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One chat message. ``role`` is what the chat template expects: system, user, tool (assistant for few-shots)."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model said in one turn. ``truncated`` is True when it ran into a token limit."""

    turn: int
    text: str
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """The environment's answer to a reply.

    ``messages`` are the next observation (empty when done). ``reward`` is what this turn earned; the episode's outcome
    is the sum. ``done`` with ``stop_reason`` ends it. ``metrics`` are counted at the end of the episode.
    ``admissible`` lists legal actions where there are any (no-progress detection).
    """

    messages: tuple[Message, ...] = ()
    reward: float = 0.0
    done: bool = False
    stop_reason: StopReason = StopReason.ENV_DONE
    metrics: Mapping[str, float] = field(default_factory=dict)
    admissible: tuple[str, ...] | None = None


class Environment(Protocol):
    """One episode at a time; many instances run at once. Every exit path closes it (trap 18).

    A tool or reward that fails or runs out of time raises :class:`~windage.errors.EnvironmentFailure`:
    the sample is then invalid, never worth 0 (trap 17).
    """

    async def reset(self, task: Task) -> tuple[Message, ...]:
        """Start the episode; the opening messages."""
        ...

    async def step(self, reply: Reply) -> StepResult:
        """Answer the model's reply."""
        ...

    async def close(self) -> None:
        """Release everything. Safe to call twice, and after a failure."""
        ...


class EnvironmentFactory(Protocol):
    """Makes environments; owns what they share (tool and reward worker processes).

    ``stop`` are the strings that end a turn besides the end-of-turn token (a tool call's closing mark); sampled, kept.
    """

    name: str
    stop: tuple[str, ...]

    def make(self) -> Environment:
        """A fresh environment for one episode."""
        ...

    def demonstrations(self, count: int, *, seed: int) -> Sequence[Sequence[Message]]:
        """Solved conversations for a supervised warm start; empty when the environment has none."""
        ...

    def tools(self) -> Sequence[Mapping[str, Any]]:
        """Tool schemas for chat templates with a tool format; empty when tools are called in plain text."""
        ...

    async def aclose(self) -> None:
        """Stop the shared workers."""
        ...


class TaskSource(Protocol):
    """Where tasks come from. Order and ids are a pure function of ``(split, seed)`` (trap 20)."""

    name: str

    def __len__(self) -> int:
        """Number of distinct training tasks; a generator without end returns ``sys.maxsize``."""
        ...

    def train(self, *, start: int = 0) -> Iterator[Task]:
        """Training tasks from index ``start`` on, epoch after epoch (the epoch is part of the id)."""
        ...

    def held_out(self, count: int) -> list[Task]:
        """The first ``count`` evaluation tasks, disjoint from the training tasks."""
        ...
