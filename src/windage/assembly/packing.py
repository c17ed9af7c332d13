"""Packing: rows into micro-batches under a token budget, the same way every time."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Literal

from windage.errors import DataError, explain

__all__ = ["pack"]


def pack(lengths: Sequence[int], *, budget: int, long_rows: Literal["alone", "error"] = "alone") -> list[list[int]]:
    """Cut rows into micro-batches of at most ``budget`` tokens: best-fit decreasing, ties by index.

    A pure function of its arguments; at most 11/9 of the fewest possible micro-batches, plus one. Rows inside a
    micro-batch, and micro-batches by their first row, come in ascending order.

    ``lengths``    tokens of each row
    ``long_rows``  a row beyond the budget goes ``alone`` into its own micro-batch, or is an ``error``

    >>> pack([5, 3, 4, 9, 2], budget=8)
    [[0, 1], [2, 4], [3]]
    >>> pack([], budget=8)
    []

    Raises:
        DataError: a row is longer than the budget and ``long_rows`` is ``error``.
    """
    longest = max(lengths, default=0)
    if longest > budget and long_rows == "error":
        raise DataError(
            explain(
                "a row is longer than the token budget",
                got=f"{longest} tokens",
                expected=f"<= assembly.token_budget = {budget}",
                do="raise the budget, lower the rollout's context budget, or set assembly.long_rows=alone",
            )
        )
    bins: list[list[int]] = []
    rooms: list[tuple[int, int]] = []  # (free tokens, micro-batch), sorted: the first one that is large enough is best
    for index in sorted(range(len(lengths)), key=lambda index: (-lengths[index], index)):
        place = bisect_left(rooms, (lengths[index], -1))
        if place == len(rooms):
            free, at = budget, len(bins)
            bins.append([index])
        else:
            free, at = rooms.pop(place)
            bins[at].append(index)
        insort(rooms, (free - lengths[index], at))
    return sorted(sorted(rows) for rows in bins)
