"""Segments: every method against plain Python over ragged rows, empty rows included."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from windage.errors import RecordError
from windage.segments import Segments

LENGTHS = st.lists(st.integers(0, 6), max_size=7)


def rows_of(lengths, values):
    edges = itertools.accumulate(lengths, initial=0)
    return [values[start:stop].tolist() for start, stop in itertools.pairwise(edges)]


def draw(lengths, seed=0):
    return torch.randn(sum(lengths), generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def flat(parts):
    return torch.tensor([x for part in parts for x in part], dtype=torch.float64)


def same(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0, check_dtype=False)


@given(LENGTHS)
def test_layout(lengths):
    segments = Segments.from_lengths(lengths)
    assert segments.lengths.tolist() == lengths
    assert segments.offsets.tolist() == list(itertools.accumulate(lengths, initial=0))
    assert segments.row_of.tolist() == [row for row, size in enumerate(lengths) for _ in range(size)]
    assert segments.position.tolist() == [place for size in lengths for place in range(size)]
    assert (segments.rows, segments.tokens, segments.longest) == (len(lengths), sum(lengths), max(lengths, default=0))
    again = Segments.from_lengths(torch.tensor(lengths, dtype=torch.int64))
    assert torch.equal(again.offsets, segments.offsets)


@given(LENGTHS)
def test_row_values(lengths):
    segments, values = Segments.from_lengths(lengths), draw(lengths)
    rows = rows_of(lengths, values)
    same(segments.sum(values), torch.tensor([sum(row) for row in rows], dtype=torch.float64))
    same(segments.mean(values), torch.tensor([sum(row) / max(len(row), 1) for row in rows], dtype=torch.float64))
    same(segments.first(values, empty=9.0), torch.tensor([row[0] if row else 9.0 for row in rows], dtype=torch.float64))
    same(segments.last(values), torch.tensor([row[-1] if row else 0.0 for row in rows], dtype=torch.float64))
    same(segments.sum(torch.ones(len(values), dtype=torch.bool)), torch.tensor(lengths))


@given(LENGTHS)
def test_token_values(lengths):
    segments, values = Segments.from_lengths(lengths), draw(lengths)
    rows = rows_of(lengths, values)
    per_row = torch.arange(len(lengths)).double() + 10
    same(segments.expand(per_row), flat([[10.0 + i] * len(row) for i, row in enumerate(rows)]))
    same(segments.next_value(values), flat([[*row[1:], 0.0][: len(row)] for row in rows]))
    after = [[*row[1:], 10.0 + i][: len(row)] for i, row in enumerate(rows)]
    same(segments.next_value(values, per_row), flat(after))
    same(segments.cumsum(values), flat([list(itertools.accumulate(row)) for row in rows]))
    same(segments.running_min(values), flat([list(itertools.accumulate(row, min)) for row in rows]))


@given(LENGTHS.filter(bool), st.randoms(use_true_random=False))
def test_tokens_of_rows(lengths, random):
    segments = Segments.from_lengths(lengths)
    chosen = random.sample(range(len(lengths)), random.randint(0, len(lengths)))
    expected = [int(segments.offsets[row]) + place for row in chosen for place in range(lengths[row])]
    assert segments.tokens_of(chosen).tolist() == expected


def test_one_bad_row_spoils_no_other():
    """NaN and inf stay in their row, whatever is asked."""
    segments = Segments.from_lengths([2, 2, 2])
    values = torch.tensor([1.0, 2.0, torch.nan, torch.inf, 3.0, 4.0])
    for found in (segments.sum(values), segments.mean(values), segments.first(values), segments.last(values)):
        assert torch.isfinite(found[[0, 2]]).all()
    for found in (
        segments.next_value(values),
        segments.cumsum(values),
        segments.running_min(values),
        segments.reverse_scan(values, values),
    ):
        assert torch.isfinite(found[[0, 1, 4, 5]]).all()


def test_sums_of_many_small_numbers():
    """float32 sums of 100 000 tokens keep seven digits: accumulated in float64."""
    segments = Segments.from_lengths([100_000])
    total = segments.sum(torch.full((100_000,), 0.1))
    assert float(total) == pytest.approx(100_000 * float(torch.tensor(0.1)), rel=1e-7)


def test_gradients():
    segments = Segments.from_lengths([3, 0, 4, 1])
    values = draw([8]).requires_grad_()
    for method in (
        segments.sum,
        segments.mean,
        segments.first,
        segments.last,
        segments.next_value,
        segments.cumsum,
        segments.running_min,
    ):
        assert torch.autograd.gradcheck(method, (values,)), method
    per_row = draw([4], seed=1).requires_grad_()
    assert torch.autograd.gradcheck(segments.expand, (per_row,))
    assert torch.autograd.gradcheck(segments.next_value, (values, per_row))


def test_negative_length_is_refused():
    with pytest.raises(RecordError, match="negative row length; got -1"):
        Segments.from_lengths([2, -1])
