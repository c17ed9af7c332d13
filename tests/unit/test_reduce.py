"""Reduction: hand numbers, any cut adds up, a trajectory in n rows weighs once."""

import itertools
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from windage import reduce
from windage.segments import Segments


@dataclass
class Rows:
    segments: Segments
    trajectory_of: torch.Tensor
    sampled: torch.Tensor
    aborted: torch.Tensor

    def select(self, rows):
        chosen = torch.tensor(rows, dtype=torch.int64)
        return Rows(
            Segments.from_lengths(self.segments.lengths[chosen]),
            self.trajectory_of[chosen],
            self.sampled[chosen],
            self.aborted[chosen],
        )


def rows_of(lengths, trajectories=None, sampled=None, aborted=None):
    return Rows(
        Segments.from_lengths(lengths),
        torch.tensor(list(range(len(lengths))) if trajectories is None else trajectories),
        torch.tensor(lengths if sampled is None else sampled),
        torch.tensor([False] * len(lengths) if aborted is None else aborted),
    )


REDUCERS = {
    "token_mean": reduce.token_mean,
    "seq_mean_token_mean": reduce.seq_mean_token_mean,
    "seq_mean_token_sum": reduce.seq_mean_token_sum,
    "constant": lambda loss, batch, totals: reduce.constant(loss, batch, totals, length=10),
}
BY_HAND = {  # rows of 2 and 4 tokens with losses 1, 2 | 3, 4, 5, 6
    "token_mean": 21 / 6,
    "seq_mean_token_mean": (1.5 + 4.5) / 2,
    "seq_mean_token_sum": (3 + 18) / 2,
    "constant": (3 + 18) / 2 / 10,
}


@pytest.mark.parametrize("name", REDUCERS)
def test_by_hand(name):
    batch, loss = rows_of([2, 4]), torch.arange(1.0, 7.0)
    assert float(REDUCERS[name](loss, batch, reduce.totals(batch))) == pytest.approx(BY_HAND[name])


@pytest.mark.parametrize("name", REDUCERS)
def test_structural_denominators(name):
    """Two tokens of row 0 were dropped before they came here: they still count."""
    whole, loss = rows_of([4, 4]), torch.arange(1.0, 9.0)
    less = rows_of([2, 4], sampled=[4, 4])
    expected = REDUCERS[name](torch.where(torch.arange(8) < 2, 0.0, loss), whole, reduce.totals(whole))
    found = REDUCERS[name](loss[2:], less, reduce.totals(less))
    assert float(found) == pytest.approx(float(expected))


@pytest.mark.parametrize("name", REDUCERS)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1, max_size=7), st.data())
def test_any_cut_adds_up(name, rows, data):
    batch = rows_of([length for length, _ in rows], trajectories=[of for _, of in rows])
    loss = torch.randn(batch.segments.tokens, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    totals = reduce.totals(batch)
    whole = float(REDUCERS[name](loss, batch, totals))
    order = data.draw(st.permutations(range(len(rows))))
    edges = sorted(data.draw(st.sets(st.integers(1, len(rows)), max_size=4)) | {0, len(rows)})
    parts = [order[start:stop] for start, stop in itertools.pairwise(edges)]
    cut = sum(float(REDUCERS[name](loss[batch.segments.tokens_of(part)], batch.select(part), totals)) for part in parts)
    assert cut == pytest.approx(whole, abs=1e-12)


@pytest.mark.parametrize("name", REDUCERS)
def test_a_trajectory_cut_into_rows_weighs_once(name):
    """Six tokens as one row, or as rows of 1, 2 and 3 of the same trajectory: the same loss (trap 39)."""
    loss = torch.arange(1.0, 9.0)
    one = rows_of([6, 2])
    cut = rows_of([1, 2, 3, 2], trajectories=[0, 0, 0, 1])
    found = [float(REDUCERS[name](loss, batch, reduce.totals(batch))) for batch in (one, cut)]
    assert found[0] == pytest.approx(found[1])


def test_counts():
    """Empty trajectories count, aborted ones do not."""
    found = reduce.totals(rows_of([2, 0, 3, 0], trajectories=[4, 1, 4, 2], aborted=[False, False, False, True]))
    assert (found.tokens, found.trajectories) == (5, 2)
    assert found.trajectory_tokens.tolist() == [0, 0, 0, 0, 5]


@pytest.mark.parametrize("name", REDUCERS)
def test_nothing_is_zero(name):
    for batch in (rows_of([0]), rows_of([0], aborted=[True])):
        loss = torch.zeros(0, requires_grad=True)
        found = REDUCERS[name](loss, batch, reduce.totals(batch))
        found.backward()
        assert float(found.detach()) == 0.0
