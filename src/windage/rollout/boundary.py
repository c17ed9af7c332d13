"""The boundary where an exception becomes a record: a bad rollout is data, not a crash.

Nothing an environment, tool, reward, engine or template does can end the run from here; the failure streak of the
pipeline stops a run in which everything fails. Cancellation and Ctrl-C pass through.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from windage.errors import DataError, EngineError, EnvironmentFailure, RecordError
from windage.records import Failure, Trajectory

__all__ = ["Deadline", "played"]


class Deadline(Exception):
    """A part of an episode ran out of time; ``reason`` is the ledger's word for it."""

    def __init__(self, reason: str, seconds: float) -> None:
        super().__init__(f"no answer in {seconds:g} s")
        self.reason = reason


async def played(
    episode: Callable[[], Awaitable[Trajectory]], *, trajectory_id: str, seconds: float
) -> Trajectory | Failure:
    """Run one episode within ``seconds``; what goes wrong comes back as a :class:`~windage.records.Failure`."""
    try:
        with anyio.fail_after(seconds):
            return await episode()
    except Exception as error:  # noqa: BLE001 - the border DESIGN names
        reason, retry = _reason(error)
        detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return Failure(trajectory_id=trajectory_id, reason=reason, detail=detail, retry=retry)


def _reason(error: Exception) -> tuple[str, bool]:
    """The ledger's word, and whether asking again may help."""
    if isinstance(error, Deadline):
        return error.reason, True
    if isinstance(error, EngineError):
        return "engine", True
    if isinstance(error, EnvironmentFailure):
        return "environment", True
    if isinstance(error, TimeoutError):
        return "deadline", True
    if isinstance(error, RecordError):
        return "invalid_tokens", False
    if isinstance(error, DataError):
        return "template", False
    return "error", False
