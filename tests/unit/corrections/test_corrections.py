"""Ratio, mask, truncate, decoupled: edges, extremes, and what is not a number."""

import math

import pytest
import torch

from windage.corrections import LIMIT, decoupled, mask, ratio, truncate


def test_log_ratios_are_formed_in_float32():
    """bf16 log-probs near -12 are 0.0625 apart: subtracting them in bf16 would make a ratio of 1 or 1.06."""
    one, other = torch.tensor([-12.0]).bfloat16(), torch.tensor([-12.03])
    found = ratio(logprobs=one, anchor_logprobs=other)
    assert found.log.dtype == torch.float32
    assert float(found.log) == pytest.approx(0.03, abs=1e-5)


def test_the_clamp_is_counted_and_has_no_gradient():
    logprobs = torch.tensor([-1.0, -50.0, -0.1, -math.inf], requires_grad=True)
    anchor = torch.tensor([-1.5, -1.0, -90.0, -1.0])
    found = ratio(logprobs=logprobs, anchor_logprobs=anchor)
    assert found.log.tolist() == [0.5, -LIMIT, LIMIT, -LIMIT]
    assert found.clamped.tolist() == [False, True, True, True]
    assert torch.isfinite(found.value).all()
    found.value.sum().backward()
    assert logprobs.grad.tolist() == [pytest.approx(math.exp(0.5)), 0.0, 0.0, 0.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_an_anchor_that_is_not_finite_marks_the_token(bad):
    logprobs = torch.tensor([-1.0, -1.0], requires_grad=True)
    found = ratio(logprobs=logprobs, anchor_logprobs=torch.tensor([bad, -2.0]))
    assert found.usable.tolist() == [False, True]
    assert found.log.tolist() == [0.0, 1.0]
    found.value.sum().backward()
    assert logprobs.grad.tolist() == [0.0, pytest.approx(math.e)]


def test_a_nan_of_the_learner_stays():
    found = ratio(logprobs=torch.tensor([math.nan]), anchor_logprobs=torch.tensor([-1.0]))
    assert torch.isnan(found.log).all()
    assert mask(log_ratio=found.log).keep.all()
    assert torch.isnan(truncate(log_ratio=found.log).values).all()


def test_the_anchor_carries_no_gradient():
    anchor = torch.tensor([-1.0], requires_grad=True)
    logprobs = torch.tensor([-1.0], requires_grad=True)
    ratio(logprobs=logprobs, anchor_logprobs=anchor).value.sum().backward()
    assert anchor.grad is None


def test_the_band_is_open():
    log_ratio = torch.tensor([0.5, 0.50001, 1.0, 1.99999, 2.0]).log()
    assert mask(log_ratio=log_ratio, band=(0.5, 2.0)).keep.tolist() == [False, True, True, True, False]


@pytest.mark.parametrize(("band", "kept"), [((0.0, 2.0), [True, True, False]), ((0.5, math.inf), [False, True, True])])
def test_open_ended_bands(band, kept):
    assert mask(log_ratio=torch.tensor([-LIMIT, 0.0, LIMIT]), band=band).keep.tolist() == kept


def test_truncate_keeps_every_token():
    found = truncate(log_ratio=torch.tensor([-1.0, 0.0, 1.0]), interval=(0.5, 1.0))
    assert found.values.tolist() == [0.5, 1.0, 1.0]
    assert found.keep.all()


def test_decoupled_drops_what_weighs_too_much():
    """w = e^1.5 = 4.48 stays, e^1.7 = 5.47 does not, however small weights are kept."""
    found = decoupled(entry_log_ratio=torch.tensor([-LIMIT, 0.0, 1.5, 1.7]))
    assert found.keep.tolist() == [True, True, True, False]
    assert float(found.values[2]) == pytest.approx(math.exp(1.5))


def test_weights_are_detached():
    log_ratio = torch.tensor([0.1], requires_grad=True)
    for found in (mask(log_ratio=log_ratio), truncate(log_ratio=log_ratio), decoupled(entry_log_ratio=log_ratio)):
        assert not found.values.requires_grad
