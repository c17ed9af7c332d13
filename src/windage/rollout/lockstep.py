"""LockstepEngine: what the engine computes becomes a function of the tasks alone (decision 0003).

waits for    every expected episode to ask for tokens, or to leave
unblocked by the last of them: all requests go to the engine as one list in a fixed order
drops when   never: when the episode that sends the list is cancelled, another one sends it
"""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import numpy as np
from numpy.typing import NDArray

from windage.engines.protocol import Completion, Engine, EngineStatus, GenerateRequest, RunningPolicy
from windage.errors import EngineError, explain

__all__ = ["LockstepEngine"]


class _Parked:
    """A request that waits for its round."""

    def __init__(self, request: GenerateRequest) -> None:
        self.request = request
        self.result: Completion | EngineError | None = None


class LockstepEngine:
    """Wraps an engine. Episodes are named by their request ids without the last part (``group/member``)."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._active: set[str] = set()
        self._parked: dict[str, _Parked] = {}
        self._sending = False
        self._event = anyio.Event()

    def expect(self, episode: str) -> None:
        """An episode will come: no round starts without it. Call for a whole wave before its first rollout."""
        self._active.add(episode)

    def leave(self, episode: str) -> None:
        """An episode is over, in whatever way: rounds no longer wait for it."""
        self._active.discard(episode)
        self._parked.pop(episode, None)
        self._notify()

    async def wave_over(self) -> None:
        """Return once every expected episode has left."""
        while self._active:
            await self._event.wait()

    async def generate(self, requests: Sequence[GenerateRequest]) -> list[Completion]:
        """Wait for the round, then for its answer. One request at a time for each episode."""
        (request,) = requests
        episode = request.request_id.rpartition("/")[0]
        if episode not in self._active:
            raise EngineError(
                explain("an episode came unexpected", got=episode, do="call expect() before its rollout starts")
            )
        parked = self._parked[episode] = _Parked(request)
        self._notify()
        try:
            while parked.result is None:
                if self._round_is_full() and not self._sending:
                    await self._send()
                else:
                    await self._event.wait()
        finally:
            if self._parked.get(episode) is parked:
                del self._parked[episode]
        if isinstance(parked.result, EngineError):
            raise parked.result
        return [parked.result]

    def _round_is_full(self) -> bool:
        return len(self._parked) == len(self._active) and all(p.result is None for p in self._parked.values())

    async def _send(self) -> None:
        """Send the round. A cancelled sender leaves it to the next one."""
        self._sending = True
        batch = [self._parked[episode] for episode in sorted(self._parked)]
        try:
            completions = await self._engine.generate([parked.request for parked in batch])
        except EngineError as error:
            for parked in batch:
                parked.result = error
        else:
            for parked, completion in zip(batch, completions, strict=True):
                parked.result = completion
        finally:
            self._sending = False
            self._notify()

    def _notify(self) -> None:
        event, self._event = self._event, anyio.Event()
        event.set()

    async def score(
        self, token_ids: Sequence[NDArray[np.int32]], *, temperature: float = 1.0
    ) -> list[NDArray[np.float32]]:
        """Score at once; scoring changes no cache."""
        return await self._engine.score(token_ids, temperature=temperature)

    async def abort(self, request_ids: Sequence[str]) -> None:
        """Abort at once."""
        await self._engine.abort(request_ids)

    async def begin_update(self, version: int, path: str) -> None:
        """Begin at once."""
        await self._engine.begin_update(version, path)

    async def commit_update(self, version: int, *, running: RunningPolicy = "drain") -> EngineStatus:
        """Commit at once."""
        return await self._engine.commit_update(version, running=running)

    async def status(self) -> EngineStatus:
        """The engine's own."""
        return await self._engine.status()
