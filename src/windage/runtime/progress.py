"""Progress on the terminal: a live table with a bar for people, one plain line for pipes and logs."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Any, Protocol, Self, TextIO

__all__ = ["PlainProgress", "Progress", "QuietProgress", "cells_of", "duration", "number", "open_progress"]


class Progress(Protocol):
    """Shows how a run is going. ``update`` takes the plain metrics of one finished step."""

    def __enter__(self) -> Self:
        """Start drawing."""
        ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing and give the terminal back."""
        ...

    def update(self, step_metrics: Mapping[str, Any]) -> None:
        """One more step is done; ``step_metrics["step"]`` is its index."""
        ...

    def note(self, text: str) -> None:
        """Say something that stays: a phase, an evaluation, a warning."""
        ...


def open_progress(
    *, steps: int, first_step: int = 0, title: str = "", stream: TextIO | None = None, quiet: bool = False
) -> Progress:
    """The right kind of progress for ``stream`` (default: stdout): live on a terminal, plain when piped."""
    out = stream or sys.stdout
    if quiet:
        return QuietProgress()
    if not out.isatty() or os.environ.get("TERM") == "dumb":
        return PlainProgress(steps=steps, stream=out)
    from windage.runtime.live_progress import LiveProgress

    return LiveProgress(steps=steps, first_step=first_step, title=title, stream=out)


class QuietProgress:
    """Says nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def update(self, step_metrics: Mapping[str, Any]) -> None:
        """Ignore it."""

    def note(self, text: str) -> None:
        """Ignore it."""


class PlainProgress:
    """One line a step, but at most one every ``every`` seconds; the first and the last step are always printed."""

    def __init__(
        self,
        *,
        steps: int,
        stream: TextIO | None = None,
        every: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._steps = steps
        self._stream = stream or sys.stdout
        self._every = every
        self._clock = clock
        self._printed = -math.inf
        self._begun: tuple[int, float] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def update(self, step_metrics: Mapping[str, Any]) -> None:
        """Print the step, unless the last line is younger than ``every`` seconds."""
        step = int(step_metrics.get("step", 0))
        now = self._clock()
        self._begun = self._begun or (step + 1, now)
        if step + 1 < self._steps and now - self._printed < self._every:
            return
        self._printed = now
        cells = (f"{label} {text}" for label, text in cells_of(step_metrics))
        self.note(f"step {step + 1}/{self._steps}  " + "  ".join([*cells, *self._left(step + 1, now)]))

    def _left(self, done: int, now: float) -> Iterator[str]:
        """Time to the end at the mean speed since the first step of this session; nothing at the end."""
        begun, since = self._begun or (done, now)
        if begun < done < self._steps:
            yield f"left {duration((now - since) / (done - begun) * (self._steps - done))}"

    def note(self, text: str) -> None:
        """Print a line."""
        self._stream.write(text + "\n")
        self._stream.flush()


def cells_of(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What both views show: label and text, in order; cells without a number are left out.

    >>> cells_of({"staleness/mean": 1.5, "staleness/max": 3, "staleness/bound": 3, "batch/reward": 0.25})
    [('reward', '0.250'), ('staleness', '1.5 max 3/3')]
    """
    cells = [
        ("reward", number(_first(values, "batch/reward", "rollout/reward"), ".3f")),
        ("success", number(_first(values, "rollout/success"), ".1%")),
        ("staleness", _staleness(values)),
        ("ESS", number(_first(values, "learner/ess"), ".2f")),
        ("waiting", number(_first(values, "queue/waiting"), ".0f")),
        ("in flight", number(_first(values, "queue/in_flight"), ".0f")),
        ("engine tok/s", number(_first(values, "speed/engine_tokens"), ",.0f")),
        ("learner tok/s", number(_first(values, "speed/learner_tokens"), ",.0f")),
        ("loss", number(_first(values, "learner/loss"), ".4f")),
        ("KL", number(_first(values, "learner/kl"), ".4f")),
        ("skipped", number(_first(values, "outcome/skipped"), ".0f")),
    ]
    return [(label, text) for label, text in cells if text and not (label == "skipped" and text == "0")]


def duration(seconds: float) -> str:
    """Hours, minutes and seconds, the last two with two digits.

    >>> duration(3725.4), duration(95)
    ('1:02:05', '01:35')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"


def number(value: float | None, form: str) -> str:
    """Format a number; nothing for a missing or NaN one."""
    return "" if value is None or math.isnan(value) else format(value, form)


def _first(values: Mapping[str, Any], *names: str) -> float | None:
    return next((float(values[name]) for name in names if isinstance(values.get(name), int | float)), None)


def _staleness(values: Mapping[str, Any]) -> str:
    mean = number(_first(values, "staleness/mean"), ".1f")
    largest = number(_first(values, "staleness/max"), ".0f")
    bound = number(_first(values, "staleness/bound"), ".0f")
    if not mean:
        return ""
    return f"{mean} max {largest}" + (f"/{bound}" if bound else "")
