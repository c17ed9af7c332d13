"""One batch: what moves, what does not, and that the cut into micro-batches does not matter (traps 32, 33)."""

import numpy as np
import pytest
import torch
from tests.models import tiny_model, vocabulary
from tests.unit.learner.batches import PlainAlgorithm, make_batch

from windage.learner.attention import ATTENTION_NAME
from windage.learner.config import LearnerConfig
from windage.learner.critic import build_critic
from windage.learner.critic_config import CriticConfig
from windage.learner.model import load_policy
from windage.learner.optimizer import Optimizer
from windage.learner.state import LearnerState
from windage.learner.update import Update

CUTS = ([[0, 1, 2, 3, 4, 5]], [[5, 0], [3], [1, 4, 2]], [[0], [1], [2], [3], [4], [5]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("model") / "m")


def learner(folder, *, algorithm=None, temperature=1.0, **settings):
    config = LearnerConfig(device="cpu", **{"lr": 1e-3, **settings})
    algorithm = algorithm or PlainAlgorithm()
    policy = load_policy(folder, config=config, limit=vocabulary(folder), temperature=temperature, trust=False)
    state = LearnerState(policy=policy, optimizer=Optimizer(policy.trainable, lr=config.lr))
    if algorithm.critic:
        state.critic = build_critic(config.critic, policy, folder=folder, seed=0, trust=False)
        state.critic_optimizer = Optimizer(state.critic.named_parameters(), lr=config.critic.lr)
    return Update(state, algorithm=algorithm, config=config)


def bits(update):
    return {f"{n}.{k}": v.clone() for n, m in update.state.modules.items() for k, v in m.state_dict().items()}


def moved(before, after):
    return {name.split(".")[0] for name in before if not torch.equal(before[name], after[name])}


def gradients(update, batch):
    """The gradients of the first update, caught at the door of the optimizer."""
    caught = {}
    for name, optimizer in update.state.optimizers.items():

        def step(norm, name=name, optimizer=optimizer):
            grads = [p.grad for p in optimizer.parameters]
            caught.setdefault(name, torch.cat([g.flatten() for g in grads if g is not None]))
            optimizer.discard()

        optimizer.step = step
    report = update.train(batch)
    return caught, report


def order(cut):
    """Where each token of the batch stands in the micro-batches one after another."""
    sizes = [6, 9, 1, 14, 4, 8]
    rows = [row for part in cut for row in part]
    starts = dict(zip(rows, np.cumsum([0] + [sizes[row] for row in rows]), strict=False))
    return torch.tensor([starts[row] + place for row in range(6) for place in range(sizes[row])])


def oracle_gradient(folder, batch, temperature):
    """REINFORCE by plain forward passes of each row alone."""
    policy = load_policy(folder, config=LearnerConfig(device="cpu"), limit=93, temperature=1.0, trust=False)
    model = policy.hf
    model.set_attn_implementation("eager")
    tokens = batch.action_tokens
    for row, reward in zip(batch.rows, batch.rewards, strict=True):
        ids = torch.tensor(row.token_ids.astype(np.int64))
        logprobs = torch.log_softmax(model(ids[None]).logits[0] / temperature, -1)
        for place in np.flatnonzero(row.action_mask):
            (-float(reward) * logprobs[place - 1, ids[place]] / tokens).backward(retain_graph=True)
    model.set_attn_implementation(ATTENTION_NAME)
    return torch.cat([p.grad.flatten() for _, p in policy.trainable])


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_gradient_is_that_of_plain_forward_passes(folder, temperature):
    batch = make_batch(cut=CUTS[1], gap=2)
    caught, _ = gradients(learner(folder, temperature=temperature), batch)
    torch.testing.assert_close(caught["policy"], oracle_gradient(folder, batch, temperature), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["value_head", "separate"])
@pytest.mark.parametrize("cut", CUTS[1:])
def test_loss_and_gradients_do_not_depend_on_the_cut(folder, cut, kind):
    found = []
    for one in (CUTS[0], cut):
        critic = CriticConfig(kind=kind, warmup=0, updates=1)
        update = learner(folder, algorithm=PlainAlgorithm(critic=True), critic=critic)
        with torch.no_grad():
            for parameter in update.state.critic.parameters():
                parameter.add_(0.01)
        found.append(gradients(update, make_batch(cut=one, gap=3)))
    (whole, first), (parts, second) = found
    for name in ("policy", "critic"):
        torch.testing.assert_close(parts[name], whole[name], atol=1e-6, rtol=1e-4)
    assert second.metrics["loss"] == pytest.approx(first.metrics["loss"], abs=1e-6)
    assert second.metrics["critic_loss"] == pytest.approx(first.metrics["critic_loss"], abs=1e-6)


def test_slices_share_the_rows_and_do_not_depend_on_the_cut(folder):
    weights = []
    for cut in CUTS[:2]:
        update = learner(folder, updates_per_batch=3, update_rows="slice")
        report = update.train(make_batch(cut=cut))
        assert report.metrics["policy_updates"] == 3
        weights.append(torch.cat([p.detach().flatten() for _, p in update.state.policy.trainable]))
    # Adam's first steps have the size of the learning rate whatever the gradient, so signs of near-zero entries count
    assert float((weights[0] - weights[1]).abs().max()) < 3e-4


def test_values_stand_before_their_token_and_bootstrap_after_the_last(folder):
    algorithm = PlainAlgorithm(critic=True)
    update = learner(folder, algorithm=algorithm, critic=CriticConfig(warmup=0))
    head = update.state.critic
    with torch.no_grad():
        torch.nn.init.normal_(head.outer.weight)
    batch = make_batch(cut=CUTS[1], gap=2)
    policy = update.state.policy
    policy.hf.set_attn_implementation("eager")
    values, bootstrap = [], []
    with torch.no_grad():
        for row in batch.rows:
            ids = torch.tensor(row.token_ids.astype(np.int64))[None]
            all_values = head(policy.trunk(ids).last_hidden_state[0])
            values += [all_values[place - 1] for place in np.flatnonzero(row.action_mask)]
            bootstrap.append(all_values[-1])
    policy.hf.set_attn_implementation(ATTENTION_NAME)
    update.train(batch)
    torch.testing.assert_close(algorithm.given["values"], torch.stack(values), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(algorithm.given["bootstrap"], torch.stack(bootstrap), atol=1e-5, rtol=1e-4)


def test_every_micro_batch_gets_its_own_entry_logprobs_and_advantages(folder):
    algorithm = PlainAlgorithm()
    learner(folder, algorithm=algorithm).train(make_batch(cut=CUTS[1]))
    assert len(algorithm.losses) == 3
    for logprobs, entry, advantages, outcomes in algorithm.losses:
        torch.testing.assert_close(logprobs, entry, atol=1e-5, rtol=1e-5)
        assert torch.equal(advantages, outcomes)


def test_entry_logprobs_stay_while_the_policy_moves(folder):
    algorithm = PlainAlgorithm()
    learner(folder, algorithm=algorithm, updates_per_batch=2).train(make_batch())
    (first, entry, *_), (second, same, *_) = algorithm.losses
    assert torch.equal(entry, same)
    assert (second - first).abs().max() > 1e-4


def test_reusing_the_entry_pass_changes_nothing(folder):
    found = []
    for reuse in (True, False):
        update = learner(folder)
        update._fused = lambda pieces, reuse=reuse: reuse
        update.train(make_batch())
        found.append(bits(update))
    assert not moved(*found)


def test_same_seed_and_batches_same_bits(folder):
    found = []
    for _ in range(2):
        update = learner(folder, algorithm=PlainAlgorithm(critic=True), critic=CriticConfig(warmup=1))
        for step in range(4):
            update.train(make_batch(step, cut=CUTS[1]))
        found.append(bits(update))
    assert not moved(*found)


@pytest.mark.parametrize("spoil", ["policy", "critic"])
@pytest.mark.parametrize("cut", CUTS[:2])
def test_a_gradient_that_is_no_number_moves_nothing(folder, spoil, cut):
    algorithm = PlainAlgorithm(critic=True)
    update = learner(folder, algorithm=algorithm, critic=CriticConfig(warmup=0))
    update.train(make_batch(0))
    before, counts = bits(update), [o.updates for o in update.state.optimizers.values()]
    algorithm.spoil = spoil
    report = update.train(make_batch(1, cut=cut))
    assert report.outcome == "skipped"
    assert spoil in report.reason
    assert "not finite" in report.reason
    assert not moved(before, bits(update))
    assert [o.updates for o in update.state.optimizers.values()] == counts
    assert report.tokens_trained == 0
    assert update.state.step == 2
    algorithm.spoil = ""
    assert update.train(make_batch(2)).outcome == "updated"


def test_warm_up_moves_the_critic_only_then_both(folder):
    update = learner(folder, algorithm=PlainAlgorithm(critic=True), critic=CriticConfig(warmup=2, updates=3))
    for step, outcome, what in (
        (0, "critic_only", {"critic"}),
        (1, "critic_only", {"critic"}),
        (2, "updated", {"critic", "policy"}),
    ):
        before = bits(update)
        report = update.train(make_batch(step))
        assert report.outcome == outcome
        assert moved(before, bits(update)) == what
        assert report.metrics["critic_updates"] == 3


def test_the_value_head_leaves_the_policy_alone_unless_asked(folder):
    trunk = {}
    for gradient in (False, True):
        critic = CriticConfig(warmup=0, updates=1, trunk_gradient=gradient, lr=1e-2)
        update = learner(folder, algorithm=PlainAlgorithm(critic=True), critic=critic)
        torch.nn.init.normal_(update.state.critic.outer.weight)
        before = bits(update)
        update.train(make_batch())
        assert moved(before, bits(update)) == {"critic", "policy"}
        trunk[gradient] = bits(update)["policy.model.embed_tokens.weight"]
    plain = learner(folder)
    plain.train(make_batch())
    assert torch.equal(trunk[False], bits(plain)["policy.model.embed_tokens.weight"])
    assert not torch.equal(trunk[True], trunk[False])


def test_the_critic_learns_its_targets(folder):
    critic = CriticConfig(warmup=1000, updates=5, lr=1e-2)
    update = learner(folder, algorithm=PlainAlgorithm(critic=True), critic=critic)
    losses = [update.train(make_batch()).metrics["critic_loss"] for _ in range(15)]
    assert losses[-1] < 0.3 * losses[0]


def test_training_raises_what_was_rewarded(folder):
    update = learner(folder, lr=3e-3)
    for _ in range(12):
        report = update.train(make_batch())
    assert report.metrics["loss"] < -0.5


def test_nothing_to_learn_is_skipped_with_its_reason(folder):
    update = learner(folder, algorithm=PlainAlgorithm(scale=0.0))
    before = bits(update)
    report = update.train(make_batch())
    assert (report.outcome, report.reason) == ("skipped", "every advantage is zero: nothing to learn")
    assert not moved(before, bits(update))


def test_constant_groups_still_teach_the_critic(folder):
    update = learner(folder, algorithm=PlainAlgorithm(critic=True, scale=0.0), critic=CriticConfig(warmup=0))
    report = update.train(make_batch())
    assert (report.outcome, report.reason) == ("critic_only", "every advantage is zero")


def test_a_batch_without_action_tokens_is_skipped(folder):
    report = learner(folder).train(make_batch(sizes=((4, 0), (3, 0))))
    assert report.outcome == "skipped"
    assert "no action tokens" in report.reason


def test_rows_without_actions_among_others_are_left_out(folder):
    report = learner(folder).train(make_batch(sizes=((4, 0), (3, 5)), cut=[[0], [1]]))
    assert report.outcome == "updated"
    assert report.tokens_trained == 5


@pytest.mark.parametrize("cut", CUTS[:2])
def test_a_method_that_asks_for_no_entry_pass_gets_none_and_the_same_update(folder, cut):
    found, reports = [], []
    for needed in (True, False):
        algorithm = PlainAlgorithm(recompute_entry=needed)
        update = learner(folder, algorithm=algorithm, updates_per_batch=2)
        reports.append(update.train(make_batch(cut=cut)))
        found.append(bits(update))
        reported = algorithm.reported
    assert not moved(*found)
    torch.testing.assert_close(
        reported, torch.cat([logprobs for logprobs, *_ in algorithm.losses[: len(cut)]])[order(cut)]
    )


def test_the_report_tells_entropy_memory_and_phases(folder):
    report = learner(folder, entropy=True).train(make_batch(version=0))
    assert 0 < report.metrics["entropy"] < np.log(93) + 1e-3
    assert report.metrics["peak_bytes"] > 1e6
    assert {"seconds_entry", "seconds_credit", "seconds_update"} <= report.metrics.keys()
