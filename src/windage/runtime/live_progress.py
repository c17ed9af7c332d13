"""The live view: a bar with the time that is left, and the last numbers, redrawn in place (rich)."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self, TextIO

from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from windage.runtime.progress import cells_of

__all__ = ["LiveProgress"]


class LiveProgress:
    """Redraws a bar and the numbers of the last step, folded to the terminal's width. Honours ``NO_COLOR``."""

    def __init__(self, *, steps: int, first_step: int = 0, title: str = "", stream: TextIO) -> None:
        self._console = Console(file=stream)
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("elapsed"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            speed_estimate_period=600.0,  # a step may take longer than rich's 30 s
        )
        self._task = self._bar.add_task(title or "training", total=steps, completed=first_step)
        self._live = Live(self._view({}), console=self._console, refresh_per_second=4, transient=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def update(self, step_metrics: Mapping[str, Any]) -> None:
        """Move the bar and replace the numbers."""
        self._bar.update(self._task, completed=int(step_metrics.get("step", 0)) + 1)
        self._live.update(self._view(step_metrics))

    def note(self, text: str) -> None:
        """Print a line above the live view."""
        self._console.print(text, markup=False, highlight=False)

    def _view(self, values: Mapping[str, Any]) -> Group:
        cells = cells_of(values)
        if not cells:
            return Group(self._bar)
        pairs = [Text.assemble((f"{label} ", "dim"), text) for label, text in cells]
        return Group(self._bar, Columns(pairs, padding=(0, 3)))
