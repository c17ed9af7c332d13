"""The run folder: everything a run leaves behind, and the lock that keeps two trainers out of one folder.

config.yaml         the resolved recipe, loadable again
metrics.jsonl       one line a batch
evaluations.jsonl   one line a held-out evaluation
samples.jsonl       a few held-out episodes as text
tensorboard/  checkpoints/  logs/  store.sqlite  summary.json  report.html
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from windage.errors import DataError, explain
from windage.runtime.disk import disk_errors, write_atomically
from windage.runtime.json_lines import append_line, keep_lines, read_lines

__all__ = ["RunFolder", "default_run_dir"]


class RunFolder:
    """Paths and append-only logs of one run. Use :meth:`create` for a new run and :meth:`open` for an old one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.metrics = path / "metrics.jsonl"
        self.evaluations = path / "evaluations.jsonl"
        self.samples = path / "samples.jsonl"
        self.tensorboard = path / "tensorboard"
        self.checkpoints = path / "checkpoints"
        self.logs = path / "logs"
        self.store = path / "store.sqlite"
        self.summary = path / "summary.json"
        self.report = path / "report.html"

    @classmethod
    def create(cls, path: str | Path, *, config: str) -> RunFolder:
        """Make the folder of a new run and write its resolved ``config`` (YAML text).

        Raises:
            DataError: the folder holds a run already, or holds anything else; or it cannot be written.
        """
        folder = cls(Path(path))
        _refuse_foreign(folder)
        with disk_errors(folder.path):
            for made in (folder.checkpoints, folder.logs):
                made.mkdir(parents=True, exist_ok=True)
        write_atomically(folder.config, config)
        return folder

    @classmethod
    def open(cls, path: str | Path) -> RunFolder:
        """The folder of an existing run.

        Raises:
            DataError: there is no run.
        """
        folder = cls(Path(path))
        if not folder.config.is_file():
            raise DataError(
                explain(
                    "no run here",
                    got=str(path),
                    expected="a run folder with config.yaml",
                    do="start one: windage train",
                )
            )
        return folder

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold the folder for one trainer; the lock falls with the process, however it ends.

        Raises:
            DataError: another process holds it.
        """
        with disk_errors(self.path):
            handle = (self.path / ".lock").open("a+")
        with handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                handle.seek(0)
                raise DataError(
                    explain(
                        f"{self.path} is in use by another trainer",
                        got=f"process {handle.read().strip() or 'unknown'}",
                        do="wait for it, or choose another --run-dir",
                    )
                ) from error
            with disk_errors(self.path):
                handle.truncate(0)
                handle.write(str(os.getpid()))
                handle.flush()
            yield

    def append_metrics(self, step: int, values: Mapping[str, Any]) -> None:
        """Append one line for batch ``step`` (0, 1, 2, …)."""
        append_line(self.metrics, {"step": step, **values})

    def append_evaluation(self, step: int, values: Mapping[str, Any]) -> None:
        """Append one evaluation, made after ``step`` batches (0: before the first)."""
        append_line(self.evaluations, {"step": step, **values})

    def append_sample(self, step: int, values: Mapping[str, Any]) -> None:
        """Append one episode as text, seen after ``step`` batches."""
        append_line(self.samples, {"step": step, **values})

    def rewind(self, step: int) -> None:
        """Forget what will be made again when batch ``step`` is redone: torn lines, and lines of later batches.

        Metrics keep ``step < step``; evaluations and samples, which are named by the batches *done*, ``<= step``.
        """
        keep_lines(self.metrics, lambda line: line["step"] < step)
        for log in (self.evaluations, self.samples):
            keep_lines(log, lambda line: line["step"] <= step)

    def read_metrics(self) -> list[dict[str, Any]]:
        """Every complete line of ``metrics.jsonl``; empty when there is none yet."""
        return read_lines(self.metrics)

    def read_evaluations(self) -> list[dict[str, Any]]:
        """Every complete line of ``evaluations.jsonl``."""
        return read_lines(self.evaluations)

    def read_samples(self) -> list[dict[str, Any]]:
        """Every complete line of ``samples.jsonl``."""
        return read_lines(self.samples)


def default_run_dir(recipe: str, *, root: str | Path = "runs", now: datetime | None = None) -> Path:
    """``runs/<recipe>-<date>-<time>``, with a number behind it when that exists.

    >>> default_run_dir("quickstart", root="/nowhere", now=datetime(2026, 12, 1, 9, 30, 5)).as_posix()
    '/nowhere/quickstart-20261201-093005'
    """
    moment = now or datetime.now().astimezone()
    first = Path(root) / f"{recipe}-{moment:%Y%m%d-%H%M%S}"
    path, number = first, 2
    while path.exists():
        path, number = first.with_name(f"{first.name}-{number}"), number + 1
    return path


def _refuse_foreign(folder: RunFolder) -> None:
    path = folder.path
    if path.exists() and not path.is_dir():
        raise DataError(explain(f"{path} is a file", expected="a folder for the run"))
    if not path.exists() or not any(path.iterdir()):
        return
    if folder.config.exists():
        raise DataError(
            explain(
                f"{path} holds a run already", do=f"go on with it: windage resume {path}; or choose another --run-dir"
            )
        )
    raise DataError(
        explain(
            f"{path} is not empty and is not a run folder",
            got=", ".join(sorted(entry.name for entry in path.iterdir())[:5]),
            do="choose an empty or new --run-dir",
        )
    )
