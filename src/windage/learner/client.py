"""LearnerClient: the learner process as the controller calls it. No torch here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import anyio

from windage.errors import DeadlineExceeded, LearnerError, explain
from windage.learner.protocol import Demonstration, LearnerStatus, Published, StepReport
from windage.learner.rpc import Reply, Request, rebuild
from windage.processes import Child, ChildDied
from windage.records import TrainBatch
from windage.records.codec import decode, encode

__all__ = ["LearnerClient"]

T = TypeVar("T")


class LearnerClient:
    """Implements :class:`~windage.learner.protocol.Learner` over a child's pipes. One call at a time; others wait.

    A call that is cancelled or runs past ``deadline`` seconds kills the process: a half-finished update cannot be
    trusted, and its late reply would answer the next call.

    Raises:
        LearnerError: the process is gone (with the end of its log), or refused.
        DeadlineExceeded: no answer within ``deadline`` seconds.
    """

    def __init__(self, child: Child, *, deadline: float = 3600.0, note: Callable[[str], None] | None = None) -> None:
        self._child = child
        self._deadline = deadline
        self._note = note
        self._turn = anyio.Lock()

    @property
    def model_folder(self) -> str:
        """Folder with config.json, weights and tokenizer as they were before training: what an engine starts from."""
        return str(self._child.ready["model_folder"])

    @property
    def vocab_size(self) -> int:
        """Ids at or above this are outside the tokenizer and are never trained or sampled."""
        return int(self._child.ready["vocab_size"])

    async def warm_start(self, demonstrations: Sequence[Demonstration], *, steps: int) -> Mapping[str, float]:
        """Supervised imitation; moves no version."""
        return await self._call("warm_start", dict[str, float], body=list(demonstrations), number=steps)

    async def train(self, batch: TrainBatch) -> StepReport:
        """Consume one batch."""
        return await self._call("train", StepReport, body=batch)

    async def publish(self, version: int) -> Published:
        """Write the current policy as ``version`` and commit the folder."""
        return await self._call("publish", Published, number=version)

    async def save(self, path: str) -> None:
        """Write a checkpoint to ``path``."""
        await self._call("save", bool, body=path)

    async def load(self, path: str) -> LearnerStatus:
        """Restore the checkpoint in ``path``."""
        return await self._call("load", LearnerStatus, body=path)

    async def status(self) -> LearnerStatus:
        """Step, version and size."""
        return await self._call("status", LearnerStatus)

    async def aclose(self) -> None:
        """Stop the process."""
        await self._child.stop()

    async def _call(self, method: str, kind: type[T], *, body: Any = None, number: int = 0) -> T:
        request = Request(method=method, body=encode(body), number=number)
        async with self._turn:
            finished = False
            try:
                with anyio.fail_after(self._deadline):
                    reply = await self._exchange(request)
                finished = True
            except TimeoutError as error:
                raise DeadlineExceeded(
                    explain(f"learner did not answer {method!r} in {self._deadline:.0f} s", do=f"see {self._child.log}")
                ) from error
            except ChildDied as error:
                finished = True
                raise LearnerError(str(error)) from error
            finally:
                if not finished:
                    self._child.kill()
        if reply.status == "error":
            raise rebuild(reply)
        return decode(reply.body, kind)

    async def _exchange(self, request: Request) -> Reply:
        await self._child.send(encode(request))
        while True:
            reply = decode(await self._child.receive(), Reply)
            if reply.status != "note":
                return reply
            if self._note is not None:
                self._note(reply.text)
