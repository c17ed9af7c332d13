"""Judges: scores answers in processes that can be killed.

waits for    a free judge, then its verdict (``seconds``)
unblocked by the verdict, or by the deadline, which kills the judge; the next question gets a new one
fails when   a judge dies or is late: the sample is invalid, never worth 0 (trap 17)
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio

from windage.environments.tool_math.failures import RewardError, RewardTimeout
from windage.environments.tool_math.quick_verdict import quick_verdict
from windage.errors import DeadlineExceeded, explain
from windage.processes import Child, ChildDied, spawn

__all__ = ["Judges"]

_LONGEST = 1000
_MEMORY_MB = 4096


class Judges:
    """At most ``count`` processes, started when first needed; plain integers need none."""

    def __init__(self, count: int, *, seconds: float, logs: Path | None = None) -> None:
        self._seconds = seconds
        self._log = Path(os.devnull) if logs is None else logs / "judges.log"
        self._free: list[Child] = []
        self._all: set[Child] = set()
        self._turns = anyio.Semaphore(count)

    async def right(self, answer: str, gold: str, scorer: Mapping[str, Any]) -> bool:
        """Is ``answer`` right?

        Raises:
            RewardTimeout: no verdict in time.
            RewardError: the judge died or did not start.
        """
        quick = quick_verdict(answer, gold)
        if quick or (quick is False and not scorer):
            return quick
        if len(answer) > _LONGEST:
            return False
        async with self._turns:
            judge = await self._take()
            settled = False
            try:
                verdict = await self._ask(judge, {"answer": answer, "gold": gold, "scorer": dict(scorer)})
                settled = True
                return verdict
            finally:
                if settled:
                    self._free.append(judge)
                else:
                    await self._end(judge)

    async def aclose(self) -> None:
        """Stop every judge. Safe to call twice."""
        self._free.clear()
        for judge in tuple(self._all):
            await self._end(judge)

    async def _take(self) -> Child:
        if self._free:
            return self._free.pop()
        try:
            judge = await spawn(
                "judge", "windage.environments.tool_math.judge", {"memory_mb": _MEMORY_MB}, log=self._log
            )
        except (ChildDied, DeadlineExceeded) as error:
            raise RewardError(str(error)) from error
        self._all.add(judge)
        return judge

    async def _ask(self, judge: Child, question: Mapping[str, Any]) -> bool:
        try:
            with anyio.fail_after(self._seconds):
                await judge.send(json.dumps(question).encode())
                return bool(json.loads(await judge.receive())["right"])
        except TimeoutError as error:
            raise RewardTimeout(
                explain("scoring ran out of time", got=question["answer"], expected=f"a verdict in {self._seconds:g} s")
            ) from error
        except ChildDied as error:
            raise RewardError(str(error)) from error

    async def _end(self, judge: Child) -> None:
        self._all.discard(judge)
        judge.kill()
        await judge.stop(grace=0)
