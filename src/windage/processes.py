"""Child processes: start, talk in frames over stdin/stdout, notice death at once, leave no orphan.

The child's stdin is at once its inbox and its *lifeline*: only the controller holds the write end, so however the
controller ends (exit, Ctrl-C, kill -9), the pipe closes and the child's reader thread ends the process. Frames are an
8-byte little-endian length and that many bytes. The first frame to the child is its configuration; the first frame
back is its ready message. Whatever the child prints goes to its log file.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import struct
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
from anyio.streams.buffered import BufferedByteReceiveStream

from windage.errors import DeadlineExceeded, WindageError, explain

__all__ = ["Child", "ChildDied", "Inbox", "spawn"]

_HEADER = struct.Struct("<Q")


class ChildDied(WindageError, RuntimeError):
    """A child process ended, or closed its pipe, while an answer was awaited."""


class Child:
    """A running child as the controller sees it. Use :func:`spawn`; close with :meth:`stop`."""

    def __init__(self, name: str, process: anyio.abc.Process, log: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.name = name
        self.pid = process.pid
        self.log = log
        self.ready: dict[str, Any] = {}
        self._process = process
        self._stdin = process.stdin
        self._stdout = BufferedByteReceiveStream(process.stdout)

    @property
    def returncode(self) -> int | None:
        """Exit status once the child has been reaped; negative for a signal; None while it runs."""
        return self._process.returncode

    async def send(self, payload: bytes) -> None:
        """Send one frame.

        Raises:
            ChildDied: the child is gone.
        """
        try:
            await self._stdin.send(_HEADER.pack(len(payload)) + payload)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, BrokenPipeError) as error:
            raise await self._died() from error

    async def receive(self) -> bytes:
        """Receive one frame.

        Raises:
            ChildDied: the child is gone.
        """
        try:
            (length,) = _HEADER.unpack(await self._stdout.receive_exactly(_HEADER.size))
            return await self._stdout.receive_exactly(length)
        except (anyio.IncompleteRead, anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
            raise await self._died() from error

    async def wait(self) -> int:
        """Wait for the exit status."""
        return await self._process.wait()

    async def stop(self, *, grace: float = 5.0) -> None:
        """Close the lifeline, wait ``grace`` seconds, then kill. Safe to call twice and under cancellation."""
        with anyio.CancelScope(shield=True):
            await self._stdin.aclose()
            with anyio.move_on_after(grace):
                await self._process.wait()
            if self._process.returncode is None:
                self.kill()
                await self._process.wait()
            await self._process.aclose()

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        if self._process.returncode is None:
            self._process.kill()

    async def _died(self) -> ChildDied:
        with anyio.move_on_after(2.0):
            await self._process.wait()
        return ChildDied(
            explain(
                f"{self.name} (pid {self.pid}) ended unexpectedly",
                got=describe_exit(self._process.returncode),
                do=f"see {self.log}{tail(self.log)}",
            )
        )


async def spawn(
    name: str,
    module: str,
    config: Mapping[str, Any],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    deadline: float = 300.0,
) -> Child:
    """Start ``python -m module``, send it ``config`` as JSON, and wait for its ready message.

    Raises:
        ChildDied: it ended before it was ready (the end of its log is in the message).
        DeadlineExceeded: it was not ready within ``deadline`` seconds; it has been killed.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as stderr:
        process = await anyio.open_process(
            [sys.executable, "-m", module],
            stderr=stderr,
            env={**os.environ, **(env or {})},
            start_new_session=True,  # Ctrl-C reaches the controller only; it stops the children in order
        )
    child = Child(name, process, log)
    try:
        with anyio.fail_after(deadline):
            await child.send(json.dumps(config).encode())
            child.ready = json.loads(await child.receive())
    except TimeoutError as error:
        raise DeadlineExceeded(
            explain(f"{name} was not ready in {deadline:.0f} s", do=f"see {log}{tail(log)}")
        ) from error
    finally:
        if not child.ready:
            child.kill()
            await child.stop(grace=0)
    return child


class Inbox:
    """The child's side: configuration first, then frames; the process ends when the controller does.

    Creating it moves ``stdout`` out of the way: what the program prints afterwards goes to the log (stderr), so that a
    stray print can never corrupt a frame.
    """

    def __init__(self) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._in = os.fdopen(os.dup(0), "rb")
        self._out = os.fdopen(os.dup(1), "wb")
        os.dup2(2, 1)
        self._lock = threading.Lock()
        self._frames: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.config: dict[str, Any] = json.loads(self._read())
        threading.Thread(target=self._pump, daemon=True, name="lifeline").start()

    def receive(self) -> bytes:
        """The next frame; blocks. Never returns after the controller is gone."""
        return self._frames.get()

    def send(self, payload: bytes) -> None:
        """Send one frame (thread-safe)."""
        with self._lock:
            self._out.write(_HEADER.pack(len(payload)))
            self._out.write(payload)
            self._out.flush()

    def ready(self, message: Mapping[str, Any]) -> None:
        """Tell the controller that this child can serve."""
        self.send(json.dumps(message).encode())

    def _read(self) -> bytes:
        header = self._in.read(_HEADER.size)
        if len(header) < _HEADER.size:
            os._exit(0)
        (length,) = _HEADER.unpack(header)
        payload = self._in.read(length)
        if len(payload) < length:
            os._exit(0)
        return payload

    def _pump(self) -> None:
        while True:
            self._frames.put(self._read())


def describe_exit(returncode: int | None) -> str:
    """Exit status in words.

    >>> describe_exit(-9)
    'killed by SIGKILL (out of memory?)'
    """
    if returncode is None:
        return "still running, pipe closed"
    if returncode < 0:
        name = signal.Signals(-returncode).name
        return f"killed by {name}" + (" (out of memory?)" if name == "SIGKILL" else "")
    return f"exit code {returncode}"


def tail(log: Path, lines: int = 12) -> str:
    """The last lines of a log, set off for an error message; empty when there is none."""
    if not log.exists():
        return ""
    last = log.read_text(errors="replace").splitlines()[-lines:]
    return "".join(f"\n    | {line}" for line in last)
