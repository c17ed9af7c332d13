"""The border between the program and the person: errors become one message and an exit code.

0 done · 1 an error · 2 wrong settings or arguments · 130 stopped by Ctrl-C
"""

from __future__ import annotations

import os
import sys
import tempfile
import traceback
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

from windage.errors import ConfigError, WindageError

__all__ = ["guarded", "remember_run", "root_cause", "set_debug"]

_run: Path | None = None


def set_debug() -> None:
    """Show tracebacks from here on; child processes too."""
    os.environ["WINDAGE_DEBUG"] = "1"


def remember_run(run: Path) -> None:
    """Save the traceback of an unexpected error into this run folder."""
    global _run  # noqa: PLW0603 - one command a process
    _run = run


@contextmanager
def guarded(run: Path | None = None) -> Generator[None]:
    """Run a command; this is the one place where any exception ends (the other is the rollout boundary).

    Raises:
        SystemExit: with the exit code of the error's kind.
    """
    if run is not None:
        remember_run(run)
    try:
        yield
    except KeyboardInterrupt:
        _interrupted()
    except BaseExceptionGroup as group:
        _finish(root_cause(group))
    except Exception as error:  # noqa: BLE001 - the border
        _finish(error)


def root_cause(error: BaseException) -> BaseException:
    """The first real error inside nested groups: Ctrl-C first, then an error raised on purpose, then any other.

    >>> root_cause(ExceptionGroup("stages", [ExceptionGroup("inner", [KeyError("x")]), ConfigError("bad")]))
    ConfigError('bad')
    """
    leaves = list(_leaves(error))
    for kind in (KeyboardInterrupt, WindageError, Exception):
        if found := next((leaf for leaf in leaves if isinstance(leaf, kind)), None):
            return found
    return leaves[0]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _finish(error: BaseException) -> None:
    if isinstance(error, KeyboardInterrupt):
        _interrupted()
    if isinstance(error, BrokenPipeError):  # the reader of a pipe went away: nobody is left to be told
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    if os.environ.get("WINDAGE_DEBUG") == "1":
        traceback.print_exception(error)
    if isinstance(error, WindageError):
        _say(f"error: {error}{_way_on()}")
        raise SystemExit(2 if isinstance(error, ConfigError) else 1) from None
    if not isinstance(error, Exception):
        raise error
    _say(f"unexpected error: {type(error).__name__}: {error}\nthe traceback is in {_save(error)}")
    raise SystemExit(1) from None


def _interrupted() -> None:
    resume = f"; go on with: windage resume {_run}" if _run else ""
    _say(f"stopped{resume}")
    raise SystemExit(130) from None


def _way_on() -> str:
    """How to go on, when there is a run whose store can be continued."""
    return f"\ngo on with: windage resume {_run}" if _run and (_run / "store.sqlite").exists() else ""


def _save(error: BaseException) -> Path:
    """Write the traceback where it can be found: the run folder's logs, else the temporary folder."""
    logs = _run / "logs" if _run is not None and _run.is_dir() else Path(tempfile.gettempdir())
    path = logs / f"windage-crash-{os.getpid()}.log"
    text = "".join(traceback.format_exception(error))
    try:
        logs.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError:
        _say(text)
    return path


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
