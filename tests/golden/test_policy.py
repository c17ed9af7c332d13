"""Numbers worked out by hand (methods F.2): ten tokens, ε = 0.2, Â = +1 on six and -1 on four.

PPO, token 3: ρ = e^0.9 = 2.459603, Â > 0, so min(2.459603, 1.2) = 1.2. Token 5: ρ = e^-2 = 0.135335, Â > 0, so the
unclipped side is smaller and stays. Token 7: ρ = e^-0.1, Â < 0: min(-0.904837, -0.904837).
DIS (0.7, 6): ρ of token 1 is 0.670320 < 0.7 and of token 5 0.135335 < 0.7: both out; 2.459603 is in.
"""

import pytest
import torch

from windage import diagnostics, objectives
from windage.corrections import mask

D = [0.05, -0.40, 0.0, 0.90, -0.02, -2.0, 0.10, -0.10, 0.01, 0.03]
A = [1.0] * 6 + [-1.0] * 4
PPO = [1.051271, 0.670320, 1.0, 1.2, 0.980199, 0.135335, -1.105171, -0.904837, -1.010050, -1.030455]
DIS = [1.051271, 0.0, 1.0, 2.459603, 0.980199, 0.0, 1.105171, 0.904837, 1.010050, 1.030455]


def tokens():
    behavior = torch.full((10,), -3.0)
    return behavior, (behavior + torch.tensor(D)).requires_grad_(), torch.tensor(A)


def check(found, expected):
    torch.testing.assert_close(found, torch.tensor(expected), atol=1e-6, rtol=1e-6)


def test_ppo_clip():
    behavior, logprobs, advantages = tokens()
    loss = objectives.ppo_clip(logprobs=logprobs, anchor_logprobs=behavior, advantages=advantages)
    check(-loss, PPO)
    loss.sum().backward()
    stopped = [-p if i != 3 else 0.0 for i, p in enumerate(PPO)]
    check(logprobs.grad, stopped)


def test_dual_clip():
    """Â = -1, ρ = e^2 = 7.389: without -7.389, with c = 3 it is -3 and has no gradient."""
    logprobs = torch.tensor([-1.0], requires_grad=True)
    given = {"logprobs": logprobs, "anchor_logprobs": torch.tensor([-3.0]), "advantages": torch.tensor([-1.0])}
    check(objectives.ppo_clip(**given).detach(), [7.389056])
    loss = objectives.ppo_clip(**given, dual_clip=3.0)
    check(loss.detach(), [3.0])
    loss.sum().backward()
    assert logprobs.grad.tolist() == [0.0]


@pytest.mark.parametrize(("band", "expected"), [((0.7, 6.0), DIS), ((0.2, 4.0), [*DIS[:1], 0.670320, *DIS[2:]])])
def test_masked_ratio(band, expected):
    behavior, logprobs, advantages = tokens()
    loss = objectives.masked_ratio(logprobs=logprobs, behavior_logprobs=behavior, advantages=advantages, band=band)
    coefficient = [-w * a for w, a in zip(expected, A, strict=True)]
    check(loss.detach(), [c * (-3.0 + d) for c, d in zip(coefficient, D, strict=True)])
    loss.sum().backward()
    check(logprobs.grad, coefficient)
    weight = mask(log_ratio=torch.tensor(D), band=band)
    check(torch.where(weight.keep, weight.values, 0.0), expected)


def test_ess():
    """Methods F.2, VCPO: log-ratios .5, -.3, .2, 1.2: (Σρ)²/Σρ²/4 = 48.0396 / 15.7821 / 4."""
    assert diagnostics.ess(log_weights=torch.tensor([0.5, -0.3, 0.2, 1.2])) == pytest.approx(0.760982, abs=1e-6)
