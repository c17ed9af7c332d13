"""Columns of ``metrics.jsonl`` as curves: thinned to what a screen can show, smoothed where noisy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Curves", "smooth"]


@dataclass(frozen=True, slots=True)
class Curves:
    """The steps of a run, column by column. ``x`` counts batches done, so the first step is at 1."""

    lines: Sequence[dict[str, Any]]
    most: int = 400

    @property
    def x(self) -> list[float]:
        """Batches done, one entry for each (thinned) step."""
        return [float(chunk[-1]["step"]) + 1.0 for chunk in self._chunks()]

    def __contains__(self, name: object) -> bool:
        return any(isinstance(line.get(str(name)), int | float) for line in self.lines)

    def mean(self, name: str) -> list[float | None]:
        """One column; several steps that share a place are averaged."""
        return [_mean(_numbers(chunk, name)) for chunk in self._chunks()]

    def largest(self, name: str) -> list[float | None]:
        """One column; of several steps that share a place the largest counts."""
        return [max(_numbers(chunk, name), default=None) for chunk in self._chunks()]

    def histograms(self, name: str, *, columns: int = 120) -> tuple[list[float], list[float], list[list[float]]]:
        """Places, edges, and the counts of a histogram, summed over the steps that share a place."""
        found = [line for line in self.lines if isinstance(line.get(name), dict)]
        if not found:
            return [], [], []
        edges = [float(edge) for edge in max((line[name]["edges"] for line in found), key=len)]
        places: list[float] = []
        sums: list[list[float]] = []
        for chunk in _cut(found, columns):
            places.append(float(chunk[-1]["step"]) + 1.0)
            shorter = (line[name]["counts"] for line in chunk)  # bins that a batch did not reach are empty
            padded = [[*counts, *[0.0] * (len(edges) - 1 - len(counts))] for counts in shorter]
            sums.append([math.fsum(column) for column in zip(*padded, strict=True)])
        return places, edges, sums

    def last(self, name: str) -> float | None:
        """The newest number of a column."""
        return next((float(v) for line in reversed(self.lines) if isinstance(v := line.get(name), int | float)), None)

    def _chunks(self) -> list[Sequence[dict[str, Any]]]:
        return _cut(self.lines, self.most)


def smooth(values: Sequence[float | None], *, span: int) -> list[float | None]:
    """Mean of the last ``span`` numbers at each place (fewer at the start); gaps stay gaps.

    >>> smooth([1.0, 3.0, None, 5.0], span=2)
    [1.0, 2.0, None, 4.0]
    """
    window: list[float] = []
    result: list[float | None] = []
    for value in values:
        if value is None:
            result.append(None)
            continue
        window = [*window[-(span - 1) :], value] if span > 1 else [value]
        result.append(math.fsum(window) / len(window))
    return result


def _cut(lines: Sequence[dict[str, Any]], most: int) -> list[Sequence[dict[str, Any]]]:
    size = max(1, math.ceil(len(lines) / most))
    return [lines[start : start + size] for start in range(0, len(lines), size)]


def _numbers(chunk: Sequence[dict[str, Any]], name: str) -> list[float]:
    return [float(value) for line in chunk if isinstance(value := line.get(name), int | float)]


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
