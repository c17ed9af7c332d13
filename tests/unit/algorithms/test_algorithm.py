"""Algorithm: arguments by name, chains over rows, whitening, the critic's loss, data that is missing."""

import dataclasses
import math
from functools import partial

import pytest
import torch
from tests.laws.batches import learner_side, make_batch

from windage import algorithms
from windage.algorithms.ask import ask
from windage.algorithms.chains import Chains
from windage.algorithms.whiten import whiten
from windage.errors import ConfigError


def test_a_function_gets_what_it_asks_for():
    def function(*, one, two=2):
        return one, two

    assert ask(function, {"one": 1, "three": 3}) == (1, 2)
    assert ask(partial(function, two=5), {"one": 1}) == (1, 5)
    assert ask(function, {"one": 1, "two": None}) == (1, 2)
    with pytest.raises(ConfigError, match=r"function needs data.*one"):
        ask(partial(function, two=5), {"one": None})


@pytest.mark.parametrize("name", [name for name in algorithms.names() if algorithms.lookup(name).critic])
def test_a_critic_that_is_missing_is_named(name):
    batch = make_batch()
    side = learner_side(batch)
    for lacking in ({"values": None, "bootstrap": side["bootstrap"]}, {"values": side["values"], "bootstrap": None}):
        with pytest.raises(ConfigError, match=f"{name} needs a critic"):
            algorithms.get(name).credit(batch, entry_logprobs=side["entry_logprobs"], **lacking)


def test_group_methods_need_no_critic():
    batch = make_batch()
    credit = algorithms.get("grpo").credit(batch, entry_logprobs=batch.behavior_logprobs)
    assert credit.returns is None
    constant = batch.segments.expand(batch.group_of) == 2
    assert not credit.advantages[constant].any()


def test_chains_join_the_rows_of_an_episode_wherever_they_are():
    batch = make_batch(order=[5, 0, 1, 3, 6, 2, 4, 7, 8, 9, 10])
    chains = Chains.of(batch)
    assert chains.segments.rows == 8
    of = chains.join(batch.trajectory_of[batch.segments.row_of])
    assert of.tolist() == sorted(of.tolist())
    numbers = torch.arange(batch.segments.tokens)
    assert torch.equal(chains.split(chains.join(numbers)), numbers)
    alone = Chains.of(make_batch(joined=True))
    assert alone.order is None


def test_whitening():
    found = whiten(torch.tensor([1.0, 2.0, 3.0, 10.0]))
    assert float(found.mean()) == pytest.approx(0, abs=1e-6)
    assert float(found.var(correction=0)) == pytest.approx(1, abs=1e-6)
    for unchanged in (torch.full((5,), 0.3), torch.tensor([2.0]), torch.zeros(0)):
        assert torch.equal(whiten(unchanged), unchanged)


def test_whitening_is_over_the_whole_batch():
    """Mean 0 and variance 1 over its action tokens, though no row has that (trap 38)."""
    batch = make_batch()
    side = learner_side(batch)
    given = {name: side[name] for name in ("entry_logprobs", "values", "bootstrap")}
    white = algorithms.get("copc").credit(batch, **given)
    plain = algorithms.get("copc", whiten=False).credit(batch, **given)
    assert float(white.advantages.mean()) == pytest.approx(0, abs=1e-6)
    assert float(white.advantages.var(correction=0)) == pytest.approx(1, abs=1e-4)
    assert torch.equal(white.returns, plain.returns)


def test_critic_loss_by_hand():
    """½ (V - G)², mean over tokens; with a clip of 0.2 around the entry value the larger of the two."""
    batch = make_batch()
    tokens = batch.segments.tokens
    values = torch.full((tokens,), 0.9, requires_grad=True)
    returns, entry = torch.ones(tokens), torch.zeros(tokens)
    algorithm = algorithms.get("ppo")
    loss = algorithm.critic_loss(values, returns, entry, batch, algorithm.totals(batch))
    assert float(loss.detach()) == pytest.approx(0.5 * 0.1**2)
    loss.backward()
    torch.testing.assert_close(values.grad, torch.full((tokens,), -0.1 / tokens))
    clipped = algorithms.get("ppo", value_clip=0.2)
    loss = clipped.critic_loss(values.detach(), returns, entry, batch, algorithm.totals(batch))
    assert float(loss) == pytest.approx(0.5 * 0.8**2)


def test_aborted_episodes_have_no_say():
    """The other members of their group are scored as if they were not there."""
    batch = make_batch()
    gone = batch.trajectory_of == 2
    length = torch.where(gone, 0, batch.segments.lengths)
    assert int(length.sum()) < batch.segments.tokens
    part = batch.select([row for row in range(batch.segments.rows) if not gone[row]])
    flagged = dataclasses.replace(batch, aborted=gone)
    algorithm = algorithms.get("grpo")
    kept = ~batch.segments.expand(gone)
    found = algorithm.credit(flagged, entry_logprobs=batch.behavior_logprobs).advantages
    expected = algorithm.credit(part, entry_logprobs=part.behavior_logprobs).advantages
    torch.testing.assert_close(found[kept], expected)
    assert not found[~kept].any()
    assert algorithm.totals(flagged).trajectories == algorithm.totals(part).trajectories == 7


def test_copc_reports_what_its_two_intervals_do():
    batch = make_batch()
    side = learner_side(batch)
    algorithm = algorithms.get("copc", clip=(0.9, 1.1), band=(0.8, 1.25))
    credit = algorithm.credit(
        batch, entry_logprobs=side["entry_logprobs"], values=side["values"], bootstrap=side["bootstrap"]
    )
    numbers, histograms = algorithm.diagnostics(
        batch,
        logprobs=side["logprobs"],
        entry_logprobs=side["entry_logprobs"],
        credit=credit,
        values=side["values"],
    )
    ratio = (side["logprobs"] - batch.behavior_logprobs).exp()
    assert numbers["masked_below"] == pytest.approx(float((ratio <= 0.8).float().mean()))
    assert numbers["masked_above"] == pytest.approx(float((ratio >= 1.25).float().mean()))
    entry = (side["entry_logprobs"] - batch.behavior_logprobs).exp()
    assert numbers["kappa_at_low"] == pytest.approx(float((entry <= 0.9).float().mean()))
    assert numbers["kappa_mean"] == pytest.approx(float(entry.clamp(0.9, 1.1).mean()))
    assert numbers["masked_positive"] + numbers["masked_negative"] == pytest.approx(
        numbers["masked_below"] + numbers["masked_above"]
    )
    assert sum(histograms["log_trace"]) == batch.segments.tokens
    assert math.isfinite(numbers["explained_variance"])
    assert math.isfinite(numbers["weight_error_correlation"])


def test_diagnostics_of_nothing():
    batch = make_batch().select([])
    nothing = torch.zeros(0)
    algorithm = algorithms.get("copc")
    credit = algorithm.credit(batch, entry_logprobs=nothing, values=nothing, bootstrap=nothing)
    numbers, _ = algorithm.diagnostics(batch, entry_logprobs=nothing, credit=credit, values=nothing)
    assert numbers == {}
