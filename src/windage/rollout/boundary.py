"""The boundary where an exception becomes a record: a bad rollout is data, not a crash.

Nothing an environment, tool, reward, engine or template does can end the run from here; the failure streak of the
pipeline stops a run in which everything fails. Cancellation and Ctrl-C pass through.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import anyio

from windage.errors import DataError, EngineError, EnvironmentFailure, RecordError

__all__ = ["Broken", "Deadline", "guarded"]


T = TypeVar("T")


class Deadline(Exception):
    """A part of an episode ran out of time; ``reason`` is the ledger's word for it."""

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(f"no answer in {seconds:g} s")
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """Why something gave no result. ``reason`` is the ledger's word; ``retry``: asking again may help."""

    reason: str
    detail: str
    retry: bool


async def guarded(work: Callable[[], Awaitable[T]], *, seconds: float) -> T | Broken:
    """Run ``work`` within ``seconds``; whatever goes wrong in it comes back as :class:`Broken`."""
    try:
        with anyio.fail_after(seconds):
            return await work()
    except Exception as error:  # noqa: BLE001 - the border DESIGN names
        reason, retry = _reason(error)
        detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return Broken(reason=reason, detail=detail, retry=retry)


def _reason(error: Exception) -> tuple[str, bool]:
    """The ledger's word, and whether asking again may help."""
    if isinstance(error, Deadline):
        return error.reason, True
    if isinstance(error, EngineError):
        return "engine", True
    if isinstance(error, EnvironmentFailure):
        return getattr(error, "reason", "environment"), True
    if isinstance(error, TimeoutError):
        return "deadline", True
    if isinstance(error, RecordError):
        return "invalid_tokens", False
    if isinstance(error, DataError):
        return "template", False
    return "error", False
