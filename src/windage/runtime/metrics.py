"""Typed metric values: how a number is reduced is decided where it is born.

Every value is a small frozen record with ``+`` (two ranks, two stages, two moments of one step) and ``plain()`` (what
is written). ``+`` is associative and commutative except for :class:`Last`, which keeps the right-hand side.
"""

from __future__ import annotations

import bisect
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from windage.errors import RecordError, explain

__all__ = ["Histogram", "Last", "Max", "Mean", "Metrics", "Sum", "UnknownMetricWarning", "Value"]


class UnknownMetricWarning(UserWarning):
    """A metric has no entry in the catalogue; it is kept all the same (an error in tests)."""


@dataclass(frozen=True, slots=True)
class Mean:
    """A weighted mean that still knows its denominator.

    >>> (Mean(3.0, 2) + Mean(1.0, 2)).plain()
    1.0
    """

    total: float
    count: float

    def __add__(self, other: Mean) -> Mean:
        return Mean(self.total + other.total, self.count + other.count)

    def plain(self) -> float:
        """``total / count``; NaN when nothing was counted."""
        return self.total / self.count if self.count else math.nan

    @classmethod
    def of(cls, values: Iterable[float]) -> Mean:
        """The mean of some values."""
        listed = [float(value) for value in values]
        return cls(math.fsum(listed), len(listed))


@dataclass(frozen=True, slots=True)
class Sum:
    """A total over ranks and time."""

    value: float

    def __add__(self, other: Sum) -> Sum:
        return Sum(self.value + other.value)

    def plain(self) -> float:
        """The total."""
        return self.value


@dataclass(frozen=True, slots=True)
class Max:
    """The largest value seen; NaN never wins.

    >>> (Max(2.0) + Max(5.0)).plain()
    5.0
    """

    value: float

    def __add__(self, other: Max) -> Max:
        if math.isnan(self.value):
            return other
        return self if math.isnan(other.value) or self.value >= other.value else other

    def plain(self) -> float:
        """The largest value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Last:
    """The most recent value (a gauge): counters of the whole run, learning rate, queue length."""

    value: float

    def __add__(self, other: Last) -> Last:
        return other

    def plain(self) -> float:
        """The most recent value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Histogram:
    """Counts between fixed edges: ``counts[i]`` holds ``edges[i] <= x < edges[i+1]``; the last bin is closed.

    Values outside the edges are counted in the first or last bin, so that nothing is lost.

    >>> Histogram.of([0, 1, 1, 7], edges=(0, 1, 2, 4)).counts
    (1.0, 2.0, 1.0)
    """

    edges: tuple[float, ...]
    counts: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.counts) != len(self.edges) - 1 or list(self.edges) != sorted(set(self.edges)):
            raise RecordError(
                explain(
                    "histogram is misshapen",
                    got=f"{len(self.edges)} edges, {len(self.counts)} counts",
                    expected="strictly increasing edges, one count fewer",
                )
            )

    def __add__(self, other: Histogram) -> Histogram:
        if self.edges != other.edges:
            raise RecordError(explain("histograms with different edges", got=other.edges, expected=self.edges))
        return Histogram(self.edges, tuple(a + b for a, b in zip(self.counts, other.counts, strict=True)))

    def plain(self) -> dict[str, list[float]]:
        """Edges and counts as lists."""
        return {"edges": list(self.edges), "counts": list(self.counts)}

    @classmethod
    def of(cls, values: Iterable[float], *, edges: Sequence[float]) -> Histogram:
        """Count finite values into the bins of ``edges``."""
        counts = [0.0] * (len(edges) - 1)
        for value in values:
            if math.isfinite(value):
                counts[min(max(bisect.bisect_right(edges, value) - 1, 0), len(counts) - 1)] += 1.0
        return cls(tuple(float(edge) for edge in edges), tuple(counts))


Value = Mean | Sum | Max | Last | Histogram
_V = TypeVar("_V", Mean, Sum, Max, Last, Histogram)


class Metrics:
    """The metrics of one step. Adding a name twice merges the two values; ``+`` merges two ranks or stages.

    >>> metrics = Metrics()
    >>> metrics.add("batch/reward", Mean(3.0, 4))
    >>> metrics.add("batch/reward", Mean(1.0, 4))
    >>> metrics.plain()
    {'batch/reward': 0.5}
    """

    def __init__(self, values: Mapping[str, Value] | None = None) -> None:
        self._values: dict[str, Value] = {}
        for name, value in (values or {}).items():
            self.add(name, value)

    def add(self, name: str, value: Value) -> None:
        """Record a value under a name of the catalogue.

        Raises:
            RecordError: the name was born with another kind of value.
        """
        _check(name, value)
        before = self._values.get(name)
        self._values[name] = value if before is None else _merge(name, before, value)

    def update(self, other: Metrics) -> Self:
        """Merge another rank's or stage's metrics into this one."""
        for name, value in other.items():
            self.add(name, value)
        return self

    def __add__(self, other: Metrics) -> Metrics:
        return Metrics(self._values).update(other)

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def items(self) -> Iterator[tuple[str, Value]]:
        """Names with their values, in the order of birth."""
        return iter(self._values.items())

    def plain(self) -> dict[str, Any]:
        """Floats, and ``{"edges", "counts"}`` for histograms: one line of ``metrics.jsonl``."""
        return {name: value.plain() for name, value in self._values.items()}


def _merge(name: str, before: Value, value: Value) -> Value:
    if type(before) is not type(value):
        raise RecordError(
            explain(f"metric {name!r} changes its kind", got=type(value).__name__, expected=type(before).__name__)
        )
    return before + value  # pyright: ignore[reportOperatorIssue]


def _check(name: str, value: Value) -> None:
    from windage.runtime.catalogue import describe

    entry = describe(name)
    if entry is None:
        warnings.warn(
            explain(f"metric {name!r} is not in the catalogue", do="declare it in windage/runtime/catalogue.py"),
            UnknownMetricWarning,
            stacklevel=3,
        )
    elif entry.kind is not type(value):
        raise RecordError(
            explain(f"metric {name!r} has the wrong kind", got=type(value).__name__, expected=entry.kind.__name__)
        )
