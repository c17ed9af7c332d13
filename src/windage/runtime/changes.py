"""Waiting for a condition in one event loop: level-triggered, with a deadline, and a message that names the culprit."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from windage.errors import DeadlineExceeded, explain

__all__ = ["Changes"]


class Changes:
    """Wakes everyone who waits for a predicate whenever something has changed.

    There is no ``await`` between testing the predicate and starting to wait, so no change can be missed.
    """

    def __init__(self) -> None:
        self._event = anyio.Event()

    def notify(self) -> None:
        """Something changed: every waiter tests its predicate again."""
        event, self._event = self._event, anyio.Event()
        event.set()

    async def until(self, ready: Callable[[], bool], *, awaiting: Callable[[], str], seconds: float) -> None:
        """Return once ``ready()`` holds.

        Raises:
            DeadlineExceeded: it did not hold within ``seconds``; ``awaiting()`` says for what and for whom it waited.
        """
        since = anyio.current_time()
        try:
            with anyio.fail_after(seconds):
                while not ready():
                    await self._event.wait()
        except TimeoutError as error:
            waited = anyio.current_time() - since
            raise DeadlineExceeded(
                explain(f"waited {waited:.0f} s for {awaiting()}", do="raise deadlines.batch if this is expected")
            ) from error
