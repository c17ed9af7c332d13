"""Loss and gradient of every algorithm off policy, against closed forms in plain Python.

A weight that was not detached would add ``1 + log-prob`` to the gradient's factor, and would be seen here.
"""

import math

import pytest
import torch
from tests.laws.batches import learner_side, make_batch
from tests.reference import loops

from windage import algorithms


def masked(lp, mu, _, adv, band):
    ratio = math.exp(lp - mu)
    weight = ratio if band[0] < ratio < band[1] else 0.0
    return -weight * adv * lp, -weight * adv


def truncated(lp, mu, _, adv, low, high):
    weight = loops.clip(math.exp(lp - mu), low, high)
    return -weight * adv * lp, -weight * adv


def clipped(lp, anchor, adv, *, low=0.2, high=0.2, dual=None):
    ratio = math.exp(lp - anchor)
    outward = ratio > 1 + high if adv > 0 else ratio < 1 - low
    gated = outward or (dual is not None and adv < 0 and ratio > dual)
    surrogate = loops.ppo_surrogate(lp, anchor, adv, low=low, high=high, dual=dual)
    return -surrogate, 0.0 if gated else -ratio * adv


def decoupled(lp, mu, entry, adv):
    weight = math.exp(entry - mu)
    if weight >= 1.5:
        return 0.0, 0.0
    loss, gradient = clipped(lp, entry, adv)
    return weight * loss, weight * gradient


CASES = {
    "copc": ({}, lambda *a: masked(*a, (0.5, 2.0))),
    "copc_no_recompute": ({"band": (0.8, 1.25)}, lambda *a: masked(*a, (0.8, 1.25))),
    "copc_no_mask": ({}, lambda *a: truncated(*a, 0.0, math.inf)),
    "sao": ({}, lambda *a: masked(*a, (0.7, 6.0))),
    "vtrace": ({}, lambda *a: truncated(*a, 0.0, 1.0)),
    "ppo": ({"dual_clip": 1.3}, lambda lp, mu, entry, adv: clipped(lp, mu, adv, dual=1.3)),
    "ppo_sync": ({"anchor": "entry"}, lambda lp, mu, entry, adv: clipped(lp, entry, adv)),
    "areal": ({"weight_max": 1.5}, decoupled),
    "grpo": ({}, lambda lp, mu, entry, adv: clipped(lp, mu, adv)),
    "dapo": ({}, lambda lp, mu, entry, adv: clipped(lp, mu, adv, high=0.28)),
}


def test_the_whole_table_is_here():
    assert set(algorithms.names()) <= set(CASES)


@pytest.mark.parametrize("name", CASES)
def test_loss_and_gradient(name):
    settings, expected = CASES[name]
    algorithm = algorithms.get(name.removesuffix("_sync"), **settings)
    batch = make_batch()
    side = learner_side(batch, drift=0.8)
    generator = torch.Generator().manual_seed(0)
    advantages = torch.randn(batch.segments.tokens, generator=generator)
    logprobs = side["logprobs"].clone().requires_grad_()
    loss = algorithm.loss(batch, logprobs=logprobs, entry_logprobs=side["entry_logprobs"], advantages=advantages)
    loss.sum().backward()
    arrays = (side["logprobs"], batch.behavior_logprobs, side["entry_logprobs"], advantages)
    pairs = [expected(*token) for token in zip(*(array.double().tolist() for array in arrays), strict=True)]
    torch.testing.assert_close(loss.detach(), torch.tensor([p[0] for p in pairs]), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(logprobs.grad, torch.tensor([p[1] for p in pairs]), atol=1e-5, rtol=1e-5)
    if "copc_no_mask" not in name:
        assert any(p[1] == 0 for p in pairs) or name == "vtrace", "the case never limits anything"
