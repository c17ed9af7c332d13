"""Objectives: gradients by region, and what is selected away."""

import math

import pytest
import torch

from windage.corrections import mask
from windage.objectives import masked_ratio, ppo_clip, reinforce


def gradient(objective, logprobs, **given):
    logprobs = torch.tensor(logprobs, requires_grad=True)
    loss = objective(logprobs=logprobs, **given)
    assert loss.dtype == torch.float32
    loss.sum().backward()
    return loss.detach(), logprobs.grad


@pytest.mark.parametrize(
    ("log_ratio", "advantage", "moves"),
    [(0.1, 1, True), (0.3, 1, False), (-0.9, 1, True), (0.3, -1, True), (-0.1, -1, True), (-0.3, -1, False)],
)
def test_ppo_stops_outward_moves_only(log_ratio, advantage, moves):
    """ln 1.2 = 0.182, ln 0.8 = -0.223: beyond them an outward step has no gradient, a step back has all of it."""
    _, found = gradient(
        ppo_clip, [-1.0], anchor_logprobs=torch.tensor([-1.0 - log_ratio]), advantages=torch.tensor([float(advantage)])
    )
    expected = -advantage * math.exp(log_ratio) if moves else 0.0
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_unequal_bounds():
    given = {"anchor_logprobs": torch.tensor([-1.24]), "advantages": torch.ones(1)}  # ρ = e^0.24 = 1.271
    assert float(gradient(ppo_clip, [-1.0], **given, clip=(0.2, 0.28))[1]) < 0
    assert float(gradient(ppo_clip, [-1.0], **given, clip=(0.2, 0.2))[1]) == 0


def test_extreme_ratios_stay_finite():
    """The branch that ``min`` throws away is clamped before ``exp`` as well (trap 31)."""
    loss, found = gradient(
        ppo_clip,
        [-0.1, -300.0, -0.1],
        anchor_logprobs=torch.tensor([-300.0, -0.1, -300.0]),
        advantages=torch.tensor([1.0, 1.0, -1.0]),
    )
    assert torch.isfinite(loss).all()
    assert torch.isfinite(found).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_tokens_without_an_anchor_reach_nothing(bad):
    anchor, advantages = torch.tensor([bad, -1.0]), torch.tensor([bad, 1.0])
    for objective, name in ((ppo_clip, "anchor_logprobs"), (masked_ratio, "behavior_logprobs")):
        loss, found = gradient(objective, [bad, -1.1], **{name: anchor}, advantages=advantages)
        assert loss[0] == 0
        assert found[0] == 0
        assert torch.isfinite(found).all()
        assert found[1] != 0


def test_masked_ratio_is_mask_and_reinforce():
    generator = torch.Generator().manual_seed(0)
    behavior = -torch.rand(200, generator=generator) - 0.5
    logprobs = behavior + 0.8 * torch.randn(200, generator=generator)
    advantages = torch.randn(200, generator=generator)
    weight = mask(log_ratio=logprobs - behavior)
    loss, found = gradient(masked_ratio, logprobs.tolist(), behavior_logprobs=behavior, advantages=advantages)
    parts, _ = gradient(reinforce, logprobs.tolist(), advantages=advantages)
    torch.testing.assert_close(loss, torch.where(weight.keep, weight.values * parts, 0.0))
    torch.testing.assert_close(found, torch.where(weight.keep, -weight.values * advantages, 0.0))
    assert 0 < int(weight.keep.sum()) < 200


def test_a_nan_that_counts_is_seen():
    for objective, name in ((ppo_clip, "anchor_logprobs"), (masked_ratio, "behavior_logprobs")):
        given = {name: torch.tensor([-1.0]), "advantages": torch.ones(1)}
        assert torch.isnan(objective(logprobs=torch.tensor([math.nan]), **given)).all()
