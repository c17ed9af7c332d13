"""Diagnostics: hand numbers, extremes, nothing."""

import math

import pytest
import torch

from windage import diagnostics
from windage.segments import Segments


def test_ess_with_one_huge_weight():
    """One token holds all the mass: 1/n, without overflow."""
    assert diagnostics.ess(log_weights=torch.tensor([900.0, 0.0, 0.0, 0.0])) == pytest.approx(0.25)
    assert math.isnan(diagnostics.ess(log_weights=torch.zeros(0)))


def test_kl_of_two_coins():
    """μ = (0.5, 0.5), π = (0.8, 0.2): KL(μ‖π) = 0.5 ln(0.5/0.8) + 0.5 ln(0.5/0.2) = 0.223144.

    Over the two outcomes in their proportions k1 and k3 are exact, k2 is not.
    """
    found = diagnostics.kl(log_ratio=torch.tensor([0.8 / 0.5, 0.2 / 0.5], dtype=torch.float64).log())
    assert found["k1"] == pytest.approx(0.2231435513)
    assert found["k3"] == pytest.approx(0.2231435513)
    assert found["k2"] == pytest.approx((math.log(1.6) ** 2 + math.log(0.4) ** 2) / 4)


def test_outside():
    log_ratio = torch.tensor([0.4, 0.5, 1.0, 2.5]).log()
    assert diagnostics.outside(log_ratio=log_ratio) == (0.5, 0.25)
    assert diagnostics.outside(log_ratio=torch.zeros(0)) == (0.0, 0.0)


def test_quantiles_are_elements():
    found = diagnostics.quantiles(torch.tensor([0.0, 10.0]), (0.0, 0.5, 0.9, 1.0))
    assert found == {0.0: 0.0, 0.5: 0.0, 0.9: 10.0, 1.0: 10.0}
    assert math.isnan(diagnostics.quantiles(torch.zeros(0), (0.5,))[0.5])


def test_mismatch_keeps_lag_zero_apart():
    """One stale token with a ratio of 3; the fresh ones are equal. Quarter 4 of the row holds it."""
    log_ratio = torch.tensor([0.0, 0.01, 0.0, math.log(3)])
    found = diagnostics.mismatch(
        log_ratio=log_ratio, staleness=torch.tensor([0, 0, 0, 2]), segments=Segments.from_lengths([4])
    )
    assert found["lag0_p100"] == pytest.approx(0.01)
    assert found["lag0_outside"] == 0.0
    assert found["stale_p50"] == pytest.approx(math.log(3))
    assert found["stale_outside"] == 1.0
    assert found["quarter4_p50"] == pytest.approx(math.log(3))
    assert found["quarter1_p100"] == 0.0
    fresh = diagnostics.mismatch(
        log_ratio=log_ratio, staleness=torch.zeros(4).long(), segments=Segments.from_lengths([4])
    )
    assert not [name for name in fresh if name.startswith("stale")]


def test_explained_variance():
    returns = torch.tensor([0.0, 1.0, 2.0, 3.0])
    assert diagnostics.explained_variance(values=returns, returns=returns) == 1.0
    assert diagnostics.explained_variance(values=returns + 5, returns=returns) == 1.0
    assert diagnostics.explained_variance(values=torch.ones(4), returns=returns) == 0.0
    assert diagnostics.explained_variance(values=-returns, returns=returns) == pytest.approx(-3.0)
    assert math.isnan(diagnostics.explained_variance(values=returns, returns=torch.ones(4)))
    assert math.isnan(diagnostics.explained_variance(values=torch.zeros(0), returns=torch.zeros(0)))


def test_trace_product_runs_to_the_end_of_its_row():
    log_weights = torch.tensor([0.1, 0.2, 0.3, -1.0])
    found = diagnostics.trace_product(log_weights=log_weights, segments=Segments.from_lengths([3, 1]))
    torch.testing.assert_close(found, torch.tensor([0.6, 0.5, 0.3, -1.0]))


@pytest.mark.parametrize(("product", "alarm"), [(0.0, 0.0), (2.0, 0.0), (2.4, 1.0), (-2.4, 1.0)])
def test_trace_alarm(product, alarm):
    """ln 10 = 2.303."""
    assert diagnostics.trace_histogram(log_product=torch.full((5,), product))[0]["alarm"] == alarm


def test_trace_histogram_is_in_decades():
    decades = torch.tensor([-9.0, -3.9, -0.1, 0.0, 0.2, 3.9, 4.1, 9.0]) * math.log(10.0)
    _, counts = diagnostics.trace_histogram(log_product=decades.double())
    assert len(counts) == len(diagnostics.TRACE_EDGES) + 1
    assert sum(counts) == 8
    assert counts[0] == 1  # below -4
    assert counts[-1] == 2  # at or above 4


def test_staleness_histogram():
    found = diagnostics.staleness_histogram(staleness=torch.tensor([0, 1, 1, 700]))
    assert len(found) == 65
    assert (found[0], found[1], found[64]) == (1.0, 2.0, 1.0)
