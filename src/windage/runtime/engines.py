"""EngineGroup: the engine processes of one machine, restarted when they die, routable only when in sync.

waits for    an engine's exit
unblocked by the process ending; then: out of rotation → new process → ``resync`` → routable again
gives up     after ``max_restarts`` restarts within the run: the run stops with the engine's last words

A request whose engine went away is sent again, whole, to the next routable one: the caller sees only a delay. An engine
that cannot be reached although its process lives is killed, so that the one way back into rotation is a restart.
"""

from __future__ import annotations

import zlib
from collections.abc import Awaitable, Callable, Container, Sequence

import anyio
import anyio.abc
import numpy as np
from numpy.typing import NDArray

from windage.engines.protocol import Completion, Engine, EngineStatus, GenerateRequest, RunningPolicy
from windage.errors import EngineError, EngineUnavailable, explain
from windage.processes import Child
from windage.runtime.changes import Changes

__all__ = ["EngineGroup"]

Launch = Callable[[int], Awaitable[tuple[Child, Engine]]]
Resync = Callable[[Engine], Awaitable[object]]


async def _nothing_to_sync(engine: Engine) -> None:
    """Before :meth:`EngineGroup.run` there is no engine."""


class EngineGroup:
    """Routes requests over the routable engines; itself an :class:`~windage.engines.protocol.Engine`.

    ``launch(index)`` starts engine ``index``; ``resync(engine)``, given to :meth:`run`, brings a fresh one to the
    published version.
    Requests of one episode go to the same engine (its prefix cache), and a list is never torn apart when only one
    engine runs.
    """

    def __init__(
        self,
        launch: Launch,
        *,
        count: int = 1,
        max_restarts: int = 5,
        patience: float = 300.0,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._launch = launch
        self._resync: Resync = _nothing_to_sync
        self._count = count
        self._max_restarts = max_restarts
        self._patience = patience
        self._note = note
        self._routable: dict[int, Engine] = {}
        self._children: dict[int, Child] = {}
        self._changes = Changes()
        self.restarts = 0
        self.tokens_generated = 0

    @property
    def engines(self) -> list[Engine]:
        """The engines in rotation, in a fixed order: the ones a publish must reach."""
        return [self._routable[index] for index in sorted(self._routable)]

    async def run(self, resync: Resync, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Start every engine, report started, and keep them alive until cancelled; then stop them."""
        self._resync = resync
        try:
            async with anyio.create_task_group() as starting:
                for index in range(self._count):
                    starting.start_soon(self._start, index)
            task_status.started()
            async with anyio.create_task_group() as watching:
                for index in range(self._count):
                    watching.start_soon(self._watch, index)
        finally:
            with anyio.CancelScope(shield=True):
                async with anyio.create_task_group() as stopping:
                    for child in self._children.values():
                        stopping.start_soon(child.stop)

    async def _start(self, index: int) -> None:
        child, engine = await self._launch(index)
        self._children[index] = child
        await self._resync(engine)
        self._routable[index] = engine
        self._changes.notify()

    async def _watch(self, index: int) -> None:
        while True:
            code = await self._children[index].wait()
            self._routable.pop(index, None)
            self.restarts += 1
            if self.restarts > self._max_restarts:
                raise EngineError(
                    explain(
                        f"engine {index} died again",
                        got=f"exit status {code} after {self.restarts - 1} restarts",
                        expected=f"at most {self._max_restarts} restarts in a run",
                        do=f"see {self._children[index].log}",
                    )
                )
            self._note(f"engine {index} died (exit status {code}); restarting")
            await self._children[index].stop(grace=0)
            await self._start(index)
            self._note(f"engine {index} is back in rotation")

    async def _route(self, key: str) -> int:
        if not self._routable:
            await self._changes.until(
                lambda: bool(self._routable), awaiting=lambda: "a routable engine", seconds=self._patience
            )
        routable = sorted(self._routable)
        return routable[zlib.crc32(key.encode()) % len(routable)]

    async def generate(self, requests: Sequence[GenerateRequest]) -> list[Completion]:
        """Continue every prompt on the engine that holds its episode; sent again when that engine goes away."""
        done: dict[int, Completion] = {}
        while len(done) < len(requests):
            refused: list[EngineError] = []
            shards = await self._shards(requests, done)
            async with anyio.create_task_group() as group:
                for index, positions in shards.items():
                    group.start_soon(self._generate_on, index, requests, positions, done, refused)
            if refused:
                raise refused[0]
        self.tokens_generated += sum(len(completion.token_ids) for completion in done.values())
        return [done[position] for position in range(len(requests))]

    async def _shards(self, requests: Sequence[GenerateRequest], done: Container[int]) -> dict[int, list[int]]:
        """Positions of the requests that are still open, by the engine that takes them."""
        shards: dict[int, list[int]] = {}
        for position, request in enumerate(requests):
            if position not in done:
                index = await self._route(request.request_id.rpartition("/")[0])
                shards.setdefault(index, []).append(position)
        return shards

    async def _generate_on(
        self,
        index: int,
        requests: Sequence[GenerateRequest],
        positions: Sequence[int],
        done: dict[int, Completion],
        refused: list[EngineError],
    ) -> None:
        engine = self._routable.get(index)
        if engine is None:
            return  # it left the rotation between routing and now: routed again
        try:
            completions = await engine.generate([requests[position] for position in positions])
        except EngineUnavailable:
            self._drop(index, engine)
        except EngineError as error:
            refused.append(error)
        else:
            done.update(zip(positions, completions, strict=True))

    async def evict(self, engine: Engine) -> None:
        """Take an engine that cannot be reached out of rotation; it is restarted and comes back in sync."""
        for index, routable in tuple(self._routable.items()):
            if routable is engine:
                self._drop(index, engine)

    def _drop(self, index: int, engine: Engine) -> None:
        """Out of rotation now; killed, so that the watcher restarts it."""
        if self._routable.get(index) is engine:
            del self._routable[index]
            self._children[index].kill()

    async def score(
        self, token_ids: Sequence[NDArray[np.int32]], *, temperature: float = 1.0
    ) -> list[NDArray[np.float32]]:
        """Score on any routable engine."""
        return await self._routable[await self._route("score")].score(token_ids, temperature=temperature)

    async def abort(self, request_ids: Sequence[str]) -> None:
        """Abort on every routable engine."""
        for engine in self.engines:
            await engine.abort(request_ids)

    async def begin_update(self, version: int, path: str) -> None:
        """Begin on every routable engine."""
        for engine in self.engines:
            await engine.begin_update(version, path)

    async def commit_update(self, version: int, *, running: RunningPolicy = "drain") -> EngineStatus:
        """Commit on every routable engine; the status of the first."""
        for engine in self.engines:
            await engine.commit_update(version, running=running)
        return await self.status()

    async def status(self) -> EngineStatus:
        """Status of the first routable engine."""
        all_status = [await engine.status() for engine in self.engines]
        if not all_status:
            raise EngineUnavailable(explain("no engine is routable", do="wait for its restart"))
        return all_status[0]
