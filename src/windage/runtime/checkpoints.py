"""Checkpoints of a run: where they are, which is the newest complete one, which may go."""

from __future__ import annotations

import shutil
from pathlib import Path

from windage.publish.folder import committed

__all__ = ["Checkpoints"]


class Checkpoints:
    """``checkpoints/batch-<n>`` covers batches ``0 … n-1``. Incomplete ones are invisible here."""

    def __init__(self, folder: Path, *, keep: int) -> None:
        self._folder = folder
        self._keep = keep

    def path(self, done: int) -> Path:
        """Where the checkpoint after ``done`` batches belongs."""
        return self._folder / f"batch-{done:06d}"

    def complete(self) -> list[int]:
        """Batches covered by each complete checkpoint, ascending."""
        found = [path for path in self._folder.glob("batch-*") if path.name.removeprefix("batch-").isdigit()]
        return sorted(int(path.name.removeprefix("batch-")) for path in found if committed(path))

    def newest(self, *, at_most: int) -> int | None:
        """The newest complete checkpoint that the log of ``at_most`` completed batches can follow; None without one."""
        return max((done for done in self.complete() if done <= at_most), default=None)

    def rotate(self) -> None:
        """Drop complete checkpoints beyond the newest ``keep``."""
        for done in self.complete()[: -self._keep]:
            shutil.rmtree(self.path(done), ignore_errors=True)
