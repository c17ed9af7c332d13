from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windage.assembly.packing import pack
from windage.errors import DataError

LENGTHS = st.lists(st.integers(1, 50), max_size=60)


@given(lengths=LENGTHS, budget=st.integers(1, 120))
def test_every_row_once_within_the_budget_and_in_order(lengths, budget):
    bins = pack(lengths, budget=budget)
    assert sorted(index for rows in bins for index in rows) == list(range(len(lengths)))
    for rows in bins:
        assert rows == sorted(rows)
        assert len(rows) == 1 or sum(lengths[index] for index in rows) <= budget
    assert [rows[0] for rows in bins] == sorted(rows[0] for rows in bins)
    assert bins == pack(list(lengths), budget=budget)


@given(lengths=LENGTHS, budget=st.integers(50, 200))
def test_no_more_micro_batches_than_the_known_limit(lengths, budget):
    """Best-fit decreasing needs at most 11/9 of the optimum plus 1, and the optimum is at least total/budget."""
    assert len(pack(lengths, budget=budget)) <= max(1, 2 * math.ceil(sum(lengths) / budget))


def test_golden():
    """By hand, longest first: 7 alone, 6 alone, 5 alone, 4 to the 6 (full), 3 to the 7 (full), 2 to the 5."""
    assert pack([7, 6, 5, 4, 3, 2], budget=10) == [[0, 4], [1, 3], [2, 5]]
    assert pack([4, 4, 4], budget=10) == [[0, 1], [2]]


def test_a_long_row_goes_alone_or_stops_the_run():
    assert pack([3, 11, 3], budget=10) == [[0, 2], [1]]
    with pytest.raises(DataError, match="a row is longer than the token budget; got 11 tokens"):
        pack([3, 11, 3], budget=10, long_rows="error")


def test_many_rows_are_packed_quickly():
    lengths = [(index * 7919) % 997 + 1 for index in range(20_000)]
    bins = pack(lengths, budget=1000)
    assert len(bins) <= math.ceil(sum(lengths) / 1000 * 1.05)
