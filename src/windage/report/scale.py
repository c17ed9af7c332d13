"""Axes: from numbers to pixels, with round ticks."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = ["Scale", "fit", "short", "ticks"]


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps ``[low, high]`` linearly to pixels ``[start, stop]`` (``start > stop`` turns the axis around)."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """Pixel of a value.

        >>> Scale(0, 10, 100, 0)(2.5)
        75.0
        """
        return self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start)


def fit(values: Iterable[float | None], *, zero: bool = False, floor: float | None = None) -> tuple[float, float]:
    """The range of finite values, a little wider; ``(0, 1)`` when there are none.

    ``zero`` makes the range hold zero; ``floor`` is a value it must reach (a bound line, a full share).
    """
    finite = [value for value in values if value is not None and math.isfinite(value)]
    finite += [0.0] if zero else []
    finite += [floor] if floor is not None else []
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    if low == high:
        low, high = (low - 0.5, high + 0.5) if not zero or low < 0 else (low, high + 1.0)
    pad = 0.06 * (high - low)
    return (low if zero and low == 0 else low - pad), high + pad


def ticks(low: float, high: float, *, about: int = 5) -> list[float]:
    """Round numbers (1, 2 or 5 times a power of ten apart) inside ``[low, high]``.

    >>> ticks(0.0, 1.06)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    raw = (high - low) / about
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= 0.7 * raw)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def short(value: float, *, percent: bool = False) -> str:
    """A number in few characters.

    >>> short(0.25, percent=True), short(12500), short(0.0003)
    ('25 %', '12.5k', '3e-04')
    """
    if percent:
        return f"{100 * value:.3g} %"
    size = abs(value)
    if size >= 1e6:
        return f"{value / 1e6:.3g}M"
    if size >= 1e4:
        return f"{value / 1e3:.3g}k"
    if value and size < 1e-3:
        return f"{value:.0e}"
    return f"{value:.4g}"
