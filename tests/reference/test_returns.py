"""Return estimators against float64 loops over random ragged rows."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.reference import loops

from windage import returns
from windage.segments import Segments

LENGTHS = st.lists(st.integers(0, 7), min_size=1, max_size=6)
UNIT = st.sampled_from([0.0, 0.5, 0.95, 1.0])


def evidence(lengths, seed):
    generator = torch.Generator().manual_seed(seed)

    def draw(size, scale=1.0):
        return scale * torch.randn(size, generator=generator, dtype=torch.float64)

    tokens = sum(lengths)
    return {
        "rewards": draw(tokens),
        "values": draw(tokens),
        "log_ratio": draw(tokens, 0.7),
        "segments": Segments.from_lengths(lengths),
        "bootstrap": draw(len(lengths)),
    }


def by_row(lengths, arrays, loop):
    """``loop(row's arrays, row index)`` -> (advantages, returns), joined."""
    found = ([], [])
    for row, (start, stop) in enumerate(itertools.pairwise(itertools.accumulate(lengths, initial=0))):
        pair = loop({name: array[start:stop].tolist() for name, array in arrays.items()}, row)
        for total, part in zip(found, pair, strict=True):
            total.extend(part)
    return [torch.tensor(part, dtype=torch.float64) for part in found]


def check(credit, advantages, targets):
    torch.testing.assert_close(credit.advantages, advantages, atol=1e-11, rtol=1e-11)
    torch.testing.assert_close(credit.returns, targets, atol=1e-11, rtol=1e-11)


@given(
    LENGTHS,
    st.integers(0, 99),
    UNIT,
    UNIT,
    UNIT,
    st.sampled_from([(0.8, 1.2), (0.0, 1.0), (1.0, 1.0), (0.5, float("inf"))]),
    st.sampled_from(["product", "residual"]),
    st.sampled_from(["next", "own"]),
)
def test_copc(lengths, seed, gamma, lam_actor, lam_critic, clip, trace, actor_adv):
    given_ = evidence(lengths, seed)
    credit = returns.copc(
        **given_,
        gamma=gamma,
        lam_actor=lam_actor,
        lam_critic=lam_critic,
        clip=clip,
        trace=trace,
        actor_adv=actor_adv,
    )
    arrays = {name: given_[name] for name in ("rewards", "values", "log_ratio")}
    expected = by_row(
        lengths,
        arrays,
        lambda row, index: loops.copc(
            **row,
            clip_at=clip,
            gamma=gamma,
            lam_actor=lam_actor,
            lam_critic=lam_critic,
            trace=trace,
            actor_adv=actor_adv,
            bootstrap=float(given_["bootstrap"][index]),
        ),
    )
    check(credit, *expected)


@given(LENGTHS, st.integers(0, 99), UNIT, UNIT, UNIT)
def test_gae(lengths, seed, gamma, lam_actor, lam_critic):
    given_ = evidence(lengths, seed)
    del given_["log_ratio"]
    credit = returns.gae(**given_, gamma=gamma, lam_actor=lam_actor, lam_critic=lam_critic)

    def loop(row, index):
        bootstrap = float(given_["bootstrap"][index])
        actor = loops.gae(**row, gamma=gamma, lam=lam_actor, bootstrap=bootstrap)
        critic = loops.gae(**row, gamma=gamma, lam=lam_critic, bootstrap=bootstrap)
        return actor, [v + e for v, e in zip(row["values"], critic, strict=True)]

    check(credit, *by_row(lengths, {name: given_[name] for name in ("rewards", "values")}, loop))


@given(LENGTHS, st.integers(0, 99), UNIT, UNIT, st.sampled_from([(1.0, 1.0), (1.2, 1.1), (2.0, 0.5)]))
def test_vtrace(lengths, seed, gamma, lam, caps):
    given_ = evidence(lengths, seed)
    credit = returns.vtrace(**given_, gamma=gamma, lam=lam, rho_max=caps[0], c_max=caps[1])
    arrays = {name: given_[name] for name in ("rewards", "values", "log_ratio")}
    expected = by_row(
        lengths,
        arrays,
        lambda row, index: loops.vtrace(
            **row,
            gamma=gamma,
            lam=lam,
            rho_max=caps[0],
            c_max=caps[1],
            bootstrap=float(given_["bootstrap"][index]),
        ),
    )
    check(credit, *expected)


@given(LENGTHS, st.integers(0, 99), UNIT, UNIT)
def test_identities(lengths, seed, gamma, lam):
    """(1, 1) is GAE; (0, 1) is V-trace; with one λ, E = κ Â."""
    given_ = evidence(lengths, seed)
    plain = {name: value for name, value in given_.items() if name != "log_ratio"}
    lams = {"lam_actor": lam, "lam_critic": lam}
    one = returns.copc(**given_, gamma=gamma, **lams, clip=(1.0, 1.0))
    two = returns.gae(**plain, gamma=gamma, **lams)
    check(one, two.advantages, two.returns)
    one = returns.copc(**given_, gamma=gamma, **lams, clip=(0.0, 1.0))
    two = returns.vtrace(**given_, gamma=gamma, lam=lam)
    check(one, two.advantages, two.returns)
    one = returns.copc(**given_, gamma=gamma, **lams)
    kappa = given_["log_ratio"].exp().clamp(0.8, 1.2)
    torch.testing.assert_close(one.returns - given_["values"], kappa * one.advantages, atol=1e-11, rtol=1e-11)


@given(LENGTHS, st.integers(0, 99))
def test_a_lambda_for_each_row(lengths, seed):
    """One λ a row, given or from the row's length, is the row alone with that λ."""
    given_ = evidence(lengths, seed)
    lams = torch.tensor([max(0.0, 1 - 1 / (0.4 * max(length, 1))) for length in lengths])
    both = [
        returns.copc(**given_, lam_actor=lams, clip=(0.5, 2.0)),
        returns.copc(**given_, lam_actor=lambda *, segments: lams.to(segments.lengths.device), clip=(0.5, 2.0)),
    ]
    torch.testing.assert_close(returns.length_adaptive(segments=given_["segments"], alpha=0.4), lams)
    arrays = {name: given_[name] for name in ("rewards", "values", "log_ratio")}
    expected = by_row(
        lengths,
        arrays,
        lambda row, index: loops.copc(
            **row, clip_at=(0.5, 2.0), lam_actor=float(lams[index]), bootstrap=float(given_["bootstrap"][index])
        ),
    )
    for credit in both:
        torch.testing.assert_close(credit.advantages, expected[0], atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(credit.returns, expected[1], atol=1e-11, rtol=1e-11)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.25, 1.0])), min_size=1, max_size=9))
def test_group_estimators(members):
    groups, outcomes = [m[0] for m in members], [m[1] for m in members]
    segments = Segments.from_lengths([i % 3 for i in range(len(members))])
    given_ = {
        "outcomes": torch.tensor(outcomes),
        "group_of": torch.tensor(groups) + 5,
        "segments": segments,
    }
    for found, expected in (
        (returns.group_mean(**given_), loops.group_mean(outcomes, groups)),
        (returns.group_mean(**given_, scale="none"), loops.group_mean(outcomes, groups, scale=False)),
        (returns.leave_one_out(**given_), loops.leave_one_out(outcomes, groups)),
    ):
        torch.testing.assert_close(found.advantages, segments.expand(torch.tensor(expected)), atol=1e-5, rtol=1e-5)
        assert found.returns is None


def test_a_long_row_keeps_its_digits():
    """20 000 tokens in float32: the running value is float64, so only the last rounding is float32's."""
    tokens = 20_000
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(tokens, generator=generator)
    rewards = torch.randn(tokens, generator=generator)
    segments = Segments.from_lengths([tokens])
    single = returns.gae(rewards=rewards, values=values, segments=segments)
    double = returns.gae(rewards=rewards.double(), values=values.double(), segments=segments)
    torch.testing.assert_close(single.advantages.double(), double.advantages, atol=5e-5, rtol=1e-6)


@pytest.mark.parametrize(
    "wrong", [{"clip": (1.1, 1.2)}, {"clip": (0.5, 0.9)}, {"clip": (-0.1, 1.0)}, {"trace": "sum"}, {"actor_adv": "me"}]
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValueError, match="expected"):
        returns.copc(**evidence([3], 0), **wrong)
