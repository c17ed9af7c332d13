"""PythonSandbox: a model's code in processes of pydantic-monty, a Python interpreter without files, network or imports.

waits for    a free process (``wait_seconds``), then for the code (``seconds``, kept inside; a second later: kill)
unblocked by the result, or by the deadline: slow or greedy code is the *model's* fault and reads as an error
fails when   no process becomes free, or one dies: the sample is then invalid
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from windage.environments.tool_math.config import ToolLimits
from windage.environments.tool_math.failures import ToolBroken, ToolTimeout
from windage.environments.tool_math.last_value import printing_last_value
from windage.errors import explain

if TYPE_CHECKING:
    from pydantic_monty import Monty, OSPolicy, ResourceLimits

__all__ = ["PythonSandbox", "ToolOutput"]

_GRACE = 1.0
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_SLOW = "TimeoutError: the code ran longer than {seconds:g} s"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """What the model reads. ``failed``: its code raised, or broke a limit."""

    text: str
    failed: bool = False


class PythonSandbox:
    """A pool of sandbox processes, started with the first call. Every call has a session of its own.

    The output is a function of the code: clock and random numbers start from fixed values, ``sleep`` returns at once.
    A thread waits for each running call, so a cancelled one is waited for until its deadline. (The library's coroutines
    would not need that, but its threads then touch Python while the interpreter ends, which aborts it now and then.)
    """

    def __init__(self, limits: ToolLimits) -> None:
        self._limits = limits
        self._pool: Monty | None = None
        self._opening = anyio.Lock()
        self._turns = anyio.Semaphore(limits.workers)
        self._threads = anyio.CapacityLimiter(limits.workers)
        self._session_limits: ResourceLimits = {
            "max_feed_duration_secs": limits.seconds,
            "max_memory": limits.memory_mb * 2**20,
            "max_recursion_depth": 200,
            "max_suspensions": 64,
        }
        self._policy: OSPolicy = {"datetime": _EPOCH, "sleep": "zero", "random_start": {"seed": 0}}

    async def run(self, code: str) -> ToolOutput:
        """Run ``code``; what it printed and the value of its last expression.

        Raises:
            ToolTimeout: no process became free in time.
            ToolBroken: the process died under the call.
        """
        if len(code) > self._limits.code_chars:
            return ToolOutput(text=f"Error: more than {self._limits.code_chars} characters of code", failed=True)
        await self._turn()
        try:
            pool = await self._opened()
            return await anyio.to_thread.run_sync(self._run, pool, code, limiter=self._threads)
        finally:
            self._turns.release()

    async def _turn(self) -> None:
        try:
            with anyio.fail_after(self._limits.wait_seconds):
                await self._turns.acquire()
        except TimeoutError as error:
            raise ToolTimeout(
                explain("no free sandbox", got=f"waited {self._limits.wait_seconds:g} s", do="raise tool.workers")
            ) from error

    def _run(self, pool: Monty, code: str) -> ToolOutput:
        from pydantic_monty import CollectString, MontyCrashedError, MontyError

        printed = CollectString(max_bytes=8 * self._limits.output_chars + 16384)
        try:
            with pool.checkout(limits=self._session_limits, os_policy=self._policy) as session:
                session.feed_run(printing_last_value(code), print_callback=printed)
        except MontyCrashedError as error:
            if not error.timed_out:
                raise ToolBroken(explain("a sandbox process died", got=str(error))) from error
            return self._failed("", _SLOW.format(seconds=self._limits.seconds))
        except MontyError as error:
            if isinstance(error.exception(), TimeoutError):  # what it printed until then depends on the machine's speed
                return self._failed("", _SLOW.format(seconds=self._limits.seconds))
            return self._failed(printed.output, str(error))
        return ToolOutput(text=self._cut(printed.output.rstrip("\n")))

    async def aclose(self) -> None:
        """Stop the processes. Safe to call twice."""
        pool, self._pool = self._pool, None
        if pool is not None:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(pool.__exit__, None, None, None)

    async def _opened(self) -> Monty:
        async with self._opening:
            if self._pool is None:
                from pydantic_monty import Monty

                pool = Monty(
                    max_processes=self._limits.workers,
                    checkout_timeout=self._limits.wait_seconds,
                    request_timeout=self._limits.seconds + _GRACE,
                )
                with anyio.CancelScope(shield=True):  # a started pool is never lost
                    self._pool = await anyio.to_thread.run_sync(pool.__enter__)
            assert self._pool is not None
            return self._pool

    def _failed(self, printed: str, error: str) -> ToolOutput:
        room = max(self._limits.output_chars - min(len(error), self._limits.output_chars) - 1, 0)
        text = f"{printed[:room].rstrip()}\n{error}".lstrip("\n")
        return ToolOutput(text=self._cut(text), failed=True)

    def _cut(self, text: str) -> str:
        limit = self._limits.output_chars
        return text if len(text) <= limit else f"{text[: limit - 2]} …"
