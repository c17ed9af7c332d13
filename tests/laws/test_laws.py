"""Laws that every algorithm of the table keeps, by default and in its variants."""

import math

import pytest
import torch
from tests.laws.batches import learner_side, make_batch

from windage import algorithms

PLAIN = {"whiten": False}
VARIANTS = {
    **{name: (name, {}) for name in algorithms.names()},
    "copc_plain": ("copc", PLAIN),
    "copc_residual_own": ("copc", {**PLAIN, "trace": "residual", "actor_adv": "own", "lam_critic": 0.9}),
    "copc_adaptive": ("copc", {**PLAIN, "lam_actor": {"alpha": 0.3}}),
    "ppo_sync": ("ppo", {**PLAIN, "anchor": "entry", "dual_clip": 3.0, "value_clip": 0.2}),
    "vtrace_wide": ("vtrace", {**PLAIN, "rho_max": 2.0, "pg_max": 2.0}),
    "areal_plain": ("areal", PLAIN),
    "sao_plain": ("sao", PLAIN),
    "rloo": ("grpo", {"baseline": "others", "reduce": "seq_mean_token_sum"}),
    "dr_grpo": ("grpo", {"scale": "none", "reduce": 16}),
    "dapo_overlong": ("dapo", {"overlong": {"limit": 8, "buffer": 6}}),
}
MASKED = [name for name, (base, _) in VARIANTS.items() if base in {"copc", "copc_no_recompute", "sao"}]
CRITICS = [name for name, (base, _) in VARIANTS.items() if algorithms.lookup(base).critic]


def build(variant):
    name, settings = VARIANTS[variant]
    return algorithms.get(name, **settings)


def run(algorithm, batch, *, parts=None, **changes):
    """Credit, the gradient of the reduced loss, and the loss; ``parts``: rows of each micro-batch."""
    side = {**learner_side(batch), **changes}
    credit = algorithm.credit(
        batch, entry_logprobs=side["entry_logprobs"], values=side["values"], bootstrap=side["bootstrap"]
    )
    logprobs = side["logprobs"].clone().requires_grad_()
    totals = algorithm.totals(batch)
    total = 0.0
    for rows in [list(range(batch.segments.rows))] if parts is None else parts:
        index, micro = batch.segments.tokens_of(rows), batch.select(rows)
        loss = algorithm.loss(
            micro,
            logprobs=logprobs[index],
            entry_logprobs=side["entry_logprobs"][index],
            advantages=credit.advantages[index],
        )
        scalar = algorithm.reduce(loss, micro, totals)
        scalar.backward()
        total += float(scalar.detach())
    return credit, logprobs.grad, total


def same(found, expected):
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_shape(variant):
    algorithm, batch = build(variant), make_batch()
    credit, gradient, total = run(algorithm, batch)
    tokens = batch.segments.tokens
    assert credit.advantages.shape == gradient.shape == (tokens,)
    assert credit.advantages.dtype == torch.float32
    assert (credit.returns is None) != algorithm.critic
    assert not credit.advantages.requires_grad
    assert torch.isfinite(gradient).all()
    assert math.isfinite(total)
    assert bool((gradient != 0).any())


@pytest.mark.parametrize("variant", VARIANTS)
def test_on_policy_it_is_the_policy_gradient(variant):
    """Engine, entry and current policy equal: every correction is 1 and d loss / d log-prob = -Â, exactly."""
    algorithm, batch = build(variant), make_batch()
    logprobs = batch.behavior_logprobs.clone().requires_grad_()
    side = learner_side(batch)
    credit = algorithm.credit(
        batch, entry_logprobs=batch.behavior_logprobs, values=side["values"], bootstrap=side["bootstrap"]
    )
    loss = algorithm.loss(
        batch, logprobs=logprobs, entry_logprobs=batch.behavior_logprobs, advantages=credit.advantages
    )
    loss.sum().backward()
    assert torch.equal(logprobs.grad, -credit.advantages)


@pytest.mark.parametrize("variant", VARIANTS)
def test_cut_into_micro_batches(variant):
    algorithm, batch = build(variant), make_batch()
    _, whole, total = run(algorithm, batch)
    rows = list(range(batch.segments.rows))
    for parts in ([[row] for row in rows], [rows[::2], rows[1::2]], [rows[5:][::-1], rows[:5]]):
        _, cut, cut_total = run(algorithm, batch, parts=parts)
        same(cut, whole)
        assert cut_total == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_order_of_rows(variant):
    """Rows of one episode keep their order among themselves; everything else may move."""
    algorithm, batch = build(variant), make_batch()
    order = [3, 1, 0, 4, 2, 5, 6, 9, 7, 10, 8]
    assert sorted(order) == list(range(batch.segments.rows))
    inside = {row: [r for r in order if batch.trajectory_of[r] == batch.trajectory_of[row]] for row in order}
    order = [sorted(inside[row])[inside[row].index(row)] for row in order]
    moved = make_batch(order=order)
    places = batch.segments.tokens_of(order)
    credit, gradient, total = run(algorithm, batch)
    moved_credit, moved_gradient, moved_total = run(algorithm, moved)
    same(moved_credit.advantages, credit.advantages[places])
    same(moved_gradient, gradient[places])
    assert moved_total == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_tokens_that_nobody_sampled(variant):
    """More prompt, more tool output, more padding: bit for bit the same."""
    algorithm = build(variant)
    credit, gradient, total = run(algorithm, make_batch())
    padded_credit, padded_gradient, padded_total = run(algorithm, make_batch(padding=5))
    assert torch.equal(padded_credit.advantages, credit.advantages)
    assert torch.equal(padded_gradient, gradient)
    assert padded_total == total


@pytest.mark.parametrize("variant", VARIANTS)
def test_an_episode_in_several_rows(variant):
    """Cut or joined: the same credit, loss and gradient (traps 34 and 39)."""
    algorithm = build(variant)
    credit, gradient, total = run(algorithm, make_batch())
    joined_credit, joined_gradient, joined_total = run(algorithm, make_batch(joined=True))
    same(joined_credit.advantages, credit.advantages)
    if algorithm.critic:
        same(joined_credit.returns, credit.returns)
    same(joined_gradient, gradient)
    assert joined_total == pytest.approx(total, abs=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_sign(variant):
    """Where a token counts, descent raises the log-prob of a positive advantage and lowers that of a negative one."""
    credit, gradient, _ = run(build(variant), make_batch())
    counts = gradient != 0
    assert torch.equal(gradient.sign()[counts], -credit.advantages.sign()[counts])


@pytest.mark.parametrize("variant", VARIANTS)
def test_weights_are_detached(variant):
    """Only the current log-probs carry gradient; none of engine, entry, advantages, values, returns does."""
    algorithm, batch = build(variant), make_batch()
    side = {name: value.clone().requires_grad_() for name, value in learner_side(batch).items()}
    credit = algorithm.credit(
        batch, entry_logprobs=side["entry_logprobs"], values=side["values"], bootstrap=side["bootstrap"]
    )
    advantages = credit.advantages.clone().requires_grad_()
    loss = algorithm.loss(
        batch, logprobs=side["logprobs"], entry_logprobs=side["entry_logprobs"], advantages=advantages
    )
    algorithm.reduce(loss, batch, algorithm.totals(batch)).backward()
    assert side["logprobs"].grad is not None
    assert all(side[name].grad is None for name in ("entry_logprobs", "values", "bootstrap"))
    assert advantages.grad is None
    if algorithm.critic:
        values, returns = side["values"], credit.returns.clone().requires_grad_()
        algorithm.critic_loss(values, returns, values, batch, algorithm.totals(batch)).backward()
        assert returns.grad is None
        assert values.grad is not None


@pytest.mark.parametrize("variant", MASKED)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_an_excluded_token_holds_reaches_nothing(variant, bad):
    """An advantage that is not finite and a log-prob of -inf, on a token outside the band (trap 30)."""
    algorithm, batch = build(variant), make_batch()
    side = learner_side(batch)
    credit = algorithm.credit(
        batch, entry_logprobs=side["entry_logprobs"], values=side["values"], bootstrap=side["bootstrap"]
    )
    found = []
    for logprob, advantage in ((-60.0, 1.0), (-math.inf, bad)):
        logprobs, advantages = side["logprobs"].clone(), credit.advantages.clone()
        logprobs[4], advantages[4] = logprob, advantage
        logprobs.requires_grad_()
        loss = algorithm.loss(batch, logprobs=logprobs, entry_logprobs=side["entry_logprobs"], advantages=advantages)
        loss.sum().backward()
        found.append((loss.detach(), logprobs.grad))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
    assert found[1][1][4] == 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_nan_on_a_token_that_counts_is_seen(variant):
    batch, algorithm = make_batch(), build(variant)
    side = learner_side(batch)
    logprobs = side["logprobs"].clone()
    logprobs[4] = math.nan
    loss = algorithm.loss(
        batch,
        logprobs=logprobs,
        entry_logprobs=side["entry_logprobs"],
        advantages=torch.ones_like(logprobs),
    )
    assert torch.isnan(loss[4])
    assert torch.isfinite(torch.cat([loss[:4], loss[5:]])).all()


@pytest.mark.parametrize("variant", CRITICS)
def test_truncated_goes_on_and_terminated_does_not(variant):
    """The bootstrap moves the returns of episodes that were cut off, and of no other (trap 35)."""
    name, settings = VARIANTS[variant]
    algorithm, batch = algorithms.get(name, **{**settings, **PLAIN}), make_batch()
    credit, _, _ = run(algorithm, batch)
    other, _, _ = run(algorithm, batch, bootstrap=learner_side(batch)["bootstrap"] + 5.0)
    truncated = torch.isin(batch.trajectory_of, batch.trajectory_of[batch.truncated])
    cut_off = batch.segments.expand(truncated)
    assert torch.equal(other.returns[~cut_off], credit.returns[~cut_off])
    assert torch.equal(other.advantages[~cut_off], credit.advantages[~cut_off])
    assert bool((other.returns != credit.returns)[cut_off].any())


@pytest.mark.parametrize("variant", CRITICS)
def test_no_episode_sees_another(variant):
    name, settings = VARIANTS[variant]
    algorithm, batch = algorithms.get(name, **{**settings, **PLAIN}), make_batch()
    credit, _, _ = run(algorithm, batch)
    own = batch.trajectory_of[batch.segments.row_of] == 3
    values = learner_side(batch)["values"]
    other, _, _ = run(algorithm, batch, values=torch.where(own, values, -9.0))
    assert torch.equal(other.advantages[own], credit.advantages[own])
    assert torch.equal(other.returns[own], credit.returns[own])


@pytest.mark.parametrize("variant", CRITICS)
def test_at_lag_zero_returns_are_those_of_gae(variant):
    """Equal weights: no correction changes a bit of the credit."""
    name, settings = VARIANTS[variant]
    kept = {key: settings[key] for key in ("lam_actor", "lam_critic") if key in settings}
    batch, algorithm = make_batch(), algorithms.get(name, **{**settings, **PLAIN})
    if name == "sao":
        kept["lam_actor"] = {"alpha": 1.5}
    plain = algorithms.get("ppo", **PLAIN, **kept)
    found, _, _ = run(algorithm, batch, entry_logprobs=batch.behavior_logprobs)
    expected, _, _ = run(plain, batch, entry_logprobs=batch.behavior_logprobs)
    assert torch.equal(found.advantages, expected.advantages)
    assert torch.equal(found.returns, expected.returns)


@pytest.mark.parametrize("variant", VARIANTS)
def test_diagnostics_are_plain_numbers(variant):
    algorithm, batch = build(variant), make_batch()
    side = learner_side(batch)
    credit, _, _ = run(algorithm, batch)
    for logprobs in (side["logprobs"], None):
        numbers, histograms = algorithm.diagnostics(
            batch, logprobs=logprobs, entry_logprobs=side["entry_logprobs"], credit=credit, values=side["values"]
        )
        assert all(type(value) is float for value in numbers.values())
        assert {"ess", "kl", "mismatch_lag0_p50", "mismatch_stale_p50"} <= numbers.keys()
        assert all(type(count) is float for counts in histograms.values() for count in counts)
        assert sum(histograms["staleness"]) == batch.segments.tokens
