from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windage.errors import RecordError
from windage.runtime.catalogue import CATALOGUE, describe
from windage.runtime.metrics import Histogram, Last, Max, Mean, Metrics, Sum, UnknownMetricWarning

whole = st.integers(-1000, 1000).map(float)
kinds = st.sampled_from([Sum, Max, lambda x: Mean(x, 2.0), lambda x: Histogram.of([x], edges=(-5, 0, 5))])


@given(kinds, st.lists(whole, min_size=3, max_size=3))
def test_merging_does_not_depend_on_how_ranks_are_grouped_or_ordered(kind, values):
    a, b, c = map(kind, values)
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a


def test_a_mean_of_ranks_weighs_by_count_not_by_rank():
    assert (Mean(10.0, 10) + Mean(0.0, 1)).plain() == pytest.approx(10 / 11)
    assert math.isnan(Mean(0, 0).plain())


def test_a_maximum_ignores_nan():
    assert (Max(math.nan) + Max(1.0)).plain() == 1.0
    assert (Max(1.0) + Max(math.nan)).plain() == 1.0


def test_a_histogram_loses_nothing_but_non_numbers():
    made = Histogram.of([-9, 0, 1.5, 2, 99, math.nan, math.inf], edges=(0, 1, 2))
    assert made.counts == (2.0, 3.0)
    with pytest.raises(RecordError, match="different edges"):
        _ = made + Histogram.of([1], edges=(0, 1, 3))
    with pytest.raises(RecordError, match="misshapen"):
        Histogram((0.0, 1.0), (1.0, 2.0))


def test_the_kind_of_a_name_is_fixed_by_the_catalogue():
    metrics = Metrics()
    with pytest.raises(RecordError, match="expected Mean"):
        metrics.add("batch/reward", Sum(1))
    with pytest.warns(UnknownMetricWarning, match="not in the catalogue"):
        metrics.add("batch/rewards", Sum(1))
    assert metrics.plain() == {"batch/rewards": 1}
    with pytest.raises(RecordError, match="changes its kind"), pytest.warns(UnknownMetricWarning):
        metrics.add("batch/rewards", Last(1))


def test_merging_steps_keeps_both_sides_unchanged():
    one, two = Metrics({"batch/tokens": Sum(3)}), Metrics({"batch/tokens": Sum(4), "batch/groups": Sum(1)})
    both = one + two
    assert both.plain() == {"batch/tokens": 7, "batch/groups": 1}
    assert one.plain() == {"batch/tokens": 3}
    one += two
    assert one.plain() == both.plain()


def test_every_rate_of_the_catalogue_states_its_denominator():
    for entry in CATALOGUE:
        assert entry.meaning
        assert entry.kind is not Mean or entry.per, entry.name
    assert len({entry.name for entry in CATALOGUE}) == len(CATALOGUE)


def test_open_families_need_a_member_name():
    assert describe("rollout/env/tool_calls").kind is Mean
    assert describe("rollout/env/") is None
    assert describe("learner/histogram/ratio").kind is Histogram
    assert describe("learner/anything").kind is Last
    assert describe("nothing/like/this") is None


def test_edges_of_the_trace_histogram_are_those_of_the_learner():
    from windage.diagnostics.trace_product import TRACE_EDGES
    from windage.runtime.learner_metrics import HISTOGRAM_EDGES

    assert HISTOGRAM_EDGES["log_trace"][1:-1] == TRACE_EDGES
