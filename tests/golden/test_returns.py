"""Numbers worked out by hand (methods F.1): six tokens, one terminal row.

ρ = exp(d); V and r as below. Derivation of one entry, COPC (0.8, 1.25) with γ = λ = 1, product trace, from the end:
κ = [1.051271, 0.8, 1, 1.25, 0.980199, 0.8] (0.670320 and 0.135335 lifted to 0.8, 2.459603 cut to 1.25).
t=5: δ = 1 + 0 - 0.6 = 0.4,   Â = 0.4,                      E = 0.8 · 0.4 = 0.32,            G = 0.92
t=4: δ = 0.6 - 0.5 = 0.1,     Â = 0.1 + 0.32 = 0.42,        E = 0.980199 · 0.42 = 0.411683,  G = 0.911683
t=3: δ = 0.5 - 0.45 = 0.05,   Â = 0.05 + 0.411683,          E = 1.25 · 0.461683 = 0.577104,  G = 1.027104
t=2: δ = 0.1 + 0.05 = 0.15,   Â = E = 0.727104,                                              G = 1.127104
t=1: δ = 0.05,                Â = 0.777104,                 E = 0.8 · 0.777104 = 0.621683,   G = 0.971683
t=0: δ = 0.05,                Â = 0.671683,                 E = 1.051271 · 0.671683,         G = 1.006121
"""

import pytest
import torch

from windage import returns
from windage.segments import Segments

D = [0.05, -0.40, 0.00, 0.90, -0.02, -2.0]
R = [0.0, 0.0, 0.1, 0.0, 0.0, 1.0]
V = [0.30, 0.35, 0.40, 0.45, 0.50, 0.60]


def evidence(keep=(0, 1, 2, 3, 4, 5), rewards=R, dtype=torch.float64):
    def chosen(array):
        return torch.tensor([array[i] for i in keep], dtype=dtype)

    return {
        "rewards": chosen(rewards),
        "values": chosen(V),
        "log_ratio": chosen(D),
        "segments": Segments.from_lengths([len(keep)]),
    }


def check(found, expected, dtype=torch.float64):
    torch.testing.assert_close(found, torch.tensor(expected, dtype=dtype), atol=1.1e-6, rtol=0)


CASES = {
    "gae": (
        {"clip": (1, 1)},
        [0.8, 0.75, 0.7, 0.55, 0.5, 0.4],
        [0.8, 0.75, 0.7, 0.55, 0.5, 0.4],
    ),
    "gae_discounted": (
        {"clip": (1, 1), "gamma": 0.99, "lam_actor": 0.95, "lam_critic": 0.95},
        [0.623789, 0.613811, 0.603733, 0.487223, 0.4702, 0.4],
        [0.623789, 0.613811, 0.603733, 0.487223, 0.4702, 0.4],
    ),
    "vtrace": (
        {"clip": (0, 1)},
        [0.318853, 0.401082, 0.351082, 0.201082, 0.154134, 0.4],
        [0.318853, 0.268853, 0.351082, 0.201082, 0.151082, 0.054134],
    ),
    "product": (
        {"clip": (0.8, 1.25)},
        [0.671683, 0.777104, 0.727104, 0.461683, 0.42, 0.4],
        [0.706121, 0.621683, 0.727104, 0.577104, 0.411683, 0.32],
    ),
    "residual": (
        {"clip": (0.8, 1.25), "trace": "residual"},
        [0.72052, 0.68052, 0.63052, 0.46802, 0.42, 0.4],
        [0.723083, 0.67052, 0.63052, 0.48052, 0.41802, 0.32],
    ),
    "wide": (
        {"clip": (0.5, 2)},
        [0.645324, 0.888119, 0.838119, 0.34406, 0.3, 0.4],
        [0.678411, 0.595324, 0.838119, 0.688119, 0.29406, 0.2],
    ),
    "discounted": (
        {"clip": (0.8, 1.25), "gamma": 0.99, "lam_actor": 0.95, "lam_critic": 0.95},
        [0.524409, 0.635179, 0.626453, 0.409104, 0.39496, 0.4],
        [0.551296, 0.508144, 0.626453, 0.511381, 0.387139, 0.32],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_copc(case):
    settings, advantages, errors = CASES[case]
    credit = returns.copc(**evidence(), **settings)
    check(credit.advantages, advantages)
    check(credit.returns, [v + e for v, e in zip(V, errors, strict=True)])
    own = returns.copc(**evidence(), **settings, actor_adv="own")
    check(own.advantages, errors)
    assert torch.equal(own.returns, credit.returns)


@pytest.mark.parametrize("case", CASES)
def test_copc_in_single_precision(case):
    settings, advantages, _ = CASES[case]
    credit = returns.copc(**evidence(dtype=torch.float32), **settings)
    assert credit.advantages.dtype == torch.float32
    check(credit.advantages, advantages, torch.float32)


def test_the_same_numbers_from_gae_and_vtrace():
    plain = {name: value for name, value in evidence().items() if name != "log_ratio"}
    for case, lam, gamma in (("gae", 1.0, 1.0), ("gae_discounted", 0.95, 0.99)):
        found = returns.gae(**plain, gamma=gamma, lam_actor=lam, lam_critic=lam)
        check(found.advantages, CASES[case][1])
    found = returns.vtrace(**evidence())
    check(found.advantages, CASES["vtrace"][1])
    check(found.returns, [v + e for v, e in zip(V, CASES["vtrace"][2], strict=True)])


def test_an_observation_in_the_middle():
    """Token 2 is a tool's: it and its reward are not there, and the chain joins tokens 1 and 3."""
    credit = returns.copc(**evidence(keep=(0, 1, 3, 4, 5)), clip=(0.8, 1.25))
    check(credit.advantages, [0.591683, 0.677104, 0.461683, 0.42, 0.4])
    check(credit.returns, [0.92202, 0.891683, 1.027104, 0.911683, 0.92])


def test_a_truncated_row_goes_on_from_the_critic():
    credit = returns.copc(
        **evidence(rewards=[0.0] * 6),
        bootstrap=torch.tensor([0.7], dtype=torch.float64),
        clip=(0.8, 1.25),
        lam_actor=0.95,
        lam_critic=0.95,
    )
    check(credit.advantages, [0.307483, 0.338794, 0.303993, 0.213889, 0.176, 0.1])
    check(credit.returns, [0.623248, 0.621035, 0.703993, 0.717362, 0.672515, 0.68])


def test_fixed_point():
    """TD on one state with weight κ = clip(π/μ, .8, 1.25) learns the value of π̃ ∝ κ μ, between μ and π."""
    mu = torch.tensor([0.4, 0.3, 0.2, 0.1], dtype=torch.float64)
    pi = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    reward = torch.tensor([1.0, 0.0, 2.0, 5.0], dtype=torch.float64)
    kappa_mu = mu * (pi / mu).clamp(0.8, 1.25)
    expected = float((kappa_mu * reward).sum() / kappa_mu.sum())
    value = 0.0
    for _ in range(400):
        credit = returns.copc(
            rewards=reward,
            values=torch.full((4,), value, dtype=torch.float64),
            log_ratio=(pi / mu).log(),
            segments=Segments.from_lengths([1, 1, 1, 1]),
            clip=(0.8, 1.25),
        )
        value += 0.2 * float((mu * (credit.returns - value)).sum())
    assert value == pytest.approx(expected, abs=1e-9)
    assert float((mu * reward).sum()) < expected < float((pi * reward).sum())


def test_group_mean_by_hand():
    """Group a: 1, 0, 0, 1: mean 1/2, Bessel std sqrt(4/4/3) = 0.577350; group b: one member; group c: constant."""
    credit = returns.group_mean(
        outcomes=torch.tensor([1.0, 0.0, 0.7, 0.0, 1.0, 2.0, 2.0]),
        group_of=torch.tensor([0, 0, 1, 0, 0, 2, 2]),
        segments=Segments.from_lengths([1] * 7),
    )
    edge = 0.5 / (0.57735026919 + 1e-6)
    check(credit.advantages, [edge, -edge, 0, -edge, edge, 0, 0], torch.float32)


def test_leave_one_out_by_hand():
    """1 - mean(0, 0.5) = 0.75; 0 - mean(1, 0.5) = -0.75; 0.5 - mean(1, 0) = 0."""
    credit = returns.leave_one_out(
        outcomes=torch.tensor([1.0, 0.0, 0.5]), group_of=torch.zeros(3).long(), segments=Segments.from_lengths([1] * 3)
    )
    check(credit.advantages, [0.75, -0.75, 0.0], torch.float32)
