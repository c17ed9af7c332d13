"""Where the time of a step went."""

from __future__ import annotations

import anyio

__all__ = ["Stopwatch"]


class Stopwatch:
    """Names the stretch of time since the last call; the clock is the event loop's (virtual in tests)."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = anyio.current_time()

    def lap(self, name: str) -> float:
        """Seconds since the last lap (or the start), kept as ``laps[name]``."""
        now = anyio.current_time()
        seconds, self._last = now - self._last, now
        self.laps[name] = self.laps.get(name, 0.0) + seconds
        return seconds
