"""The agent loop: token-exact rows, budgets, deadlines, failures as data, and nothing left open."""

from __future__ import annotations

import anyio
import numpy as np
import pytest
from tests.rollout_fakes import ScriptedEngine, ScriptedFactory, lease, play

from windage.environments.protocol import Message, StepResult
from windage.errors import EngineUnavailable, EnvironmentFailure
from windage.records import Failure, StopReason
from windage.rollout.config import RolloutConfig
from windage.rollout.worker import RolloutWorker

OBSERVED = StepResult(messages=(Message(role="tool", content="=2|"),), reward=0.25)
DONE = StepResult(reward=1.0, done=True, metrics={"success": 1.0})


def roll(tokenizer, replies, answers, *, members=1, engine=None, factory=None, **settings):
    config = RolloutConfig(**{"max_tokens": 8, "max_context": 64, "retries": 0, **settings})
    engine = engine or ScriptedEngine(tokenizer, replies)
    factory = factory or ScriptedFactory(answers)
    worker = RolloutWorker(engine=engine, factory=factory, tokenizer=tokenizer, config=config, clock=lambda: 0.0)
    group = play(lambda: worker.roll(lease(members)))
    assert all(environment.closed == 1 for environment in factory.made), "every exit path closes (trap 18)"
    return group, engine, factory


def test_two_turns_are_one_exact_row(characters):
    group, engine, factory = roll(characters, {(0, 0): "<1+1>", (0, 1): "#2$"}, [OBSERVED, DONE], entropy=True)
    (trajectory,) = group.trajectories
    (row,) = trajectory.rows
    assert characters.decode(row.token_ids, special=True) == "1+1?<1+1>=2|#2$"
    assert row.action_mask.tolist() == [False] * 4 + [True] * 5 + [False] * 3 + [True] * 3
    np.testing.assert_allclose(row.behavior_logprobs[4:9], -0.1 * np.arange(1, 6), rtol=1e-6)
    assert np.isnan(row.behavior_logprobs[~row.action_mask]).all()
    assert row.turn_ids.tolist() == [-1] * 4 + [0] * 5 + [-1] * 3 + [1] * 3
    assert set(row.policy_version[row.action_mask]) == {3}
    assert row.rewards[8] == 0.25, "a reward on an observation belongs to the action before it"
    assert row.rewards[14] == 1.0
    assert trajectory.reward == pytest.approx(float(row.rewards.sum())) == 1.25
    assert trajectory.stop_reason is StopReason.ENV_DONE
    assert trajectory.metrics == {"success": 1.0, "rewritten": 0.0}
    assert [reply.text for reply in factory.made[0].replies] == ["<1+1>", "#2"]
    assert characters.decode(engine.requests[1].prompt_ids) == "1+1?<1+1>=2|"
    assert row.entropy is not None
    assert np.isnan(row.entropy).sum() == 7


def test_members_have_their_own_seeds_and_a_reissue_has_the_same(characters):
    replies = {(0, 0): "#2$", (1, 0): "#2$"}
    _, engine, _ = roll(characters, replies, [DONE], members=2)
    _, again, _ = roll(characters, replies, [DONE], members=2)
    seeds = {request.request_id: request.sampling.seed for request in engine.requests}
    assert len(set(seeds.values())) == 2
    assert seeds == {request.request_id: request.sampling.seed for request in again.requests}


def test_truncated_turn_ends_the_episode_and_keeps_its_reward(characters):
    partial = StepResult(reward=0.5, messages=(Message(role="tool", content="=2|"),))
    group, engine, factory = roll(characters, {(0, 0): "<1111111111>"}, [partial])
    (trajectory,) = group.trajectories
    assert trajectory.stop_reason is StopReason.TRUNCATED
    assert trajectory.reward == 0.5
    assert factory.made[0].replies[0].truncated
    assert len(engine.requests) == 1, "no generation after a truncated turn (trap 48)"


def test_turn_limit_truncates(characters):
    replies = {(0, turn): "<1+1>" for turn in range(3)}
    group, engine, _ = roll(characters, replies, [OBSERVED] * 3, max_turns=3)
    assert group.trajectories[0].stop_reason is StopReason.TRUNCATED
    assert len(engine.requests) == 3


def test_context_budget_reserves_the_next_turn(characters):
    """4 prompt + 5 said + 3 observed + 8 reserved = 20: at 20 the second turn fits, at 19 it does not."""
    replies = {(0, 0): "<1+1>", (0, 1): "#2$"}
    fits, engine, _ = roll(characters, replies, [OBSERVED, DONE], max_context=20)
    assert fits.trajectories[0].stop_reason is StopReason.ENV_DONE
    assert len(engine.requests) == 2
    cut, engine, _ = roll(characters, replies, [OBSERVED, DONE], max_context=19)
    assert cut.trajectories[0].stop_reason is StopReason.TRUNCATED
    assert len(engine.requests) == 1
    assert len(cut.trajectories[0].rows[0]) == 9, "the observation that does not fit is not appended"


def test_prompt_without_room_is_a_failure_not_a_reward(characters):
    group, _, _ = roll(characters, {}, [], max_context=11)
    assert group.trajectories == ()
    assert group.failures[0].reason == "invalid_tokens"
    assert "no room for a reply" in group.failures[0].detail


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([EnvironmentFailure("worker gone")], "environment"),
        ([ValueError("bug in a reward")], "error"),
        ([500.0], "tool_timeout"),
    ],
)
def test_failing_environment_makes_the_sample_invalid(characters, answers, reason):
    group, _, _ = roll(characters, {(0, 0): "#2$"}, answers, step_seconds=60)
    assert group.trajectories == ()
    assert [failure.reason for failure in group.failures] == [reason]


def test_one_failing_member_leaves_the_others(characters):
    replies = {(0, 0): "#2$", (1, 0): EngineUnavailable("gone"), (2, 0): "#2$"}
    group, _, _ = roll(characters, replies, [DONE], members=3)
    assert [trajectory.trajectory_id for trajectory in group.trajectories] == ["g0/0", "g0/2"]
    assert group.failures == (
        Failure(trajectory_id="g0/1", reason="engine", detail="EngineUnavailable: gone", retry=True),
    )


def test_failed_member_is_played_again(characters):
    replies = {(0, 0): [EngineUnavailable("gone"), "#2$"]}
    group, engine, factory = roll(characters, replies, [DONE], retries=1)
    assert len(group.trajectories) == 1
    assert group.failures == ()
    assert len(factory.made) == 2
    assert engine.requests[0].sampling.seed == engine.requests[1].sampling.seed


def test_a_bug_is_not_played_again(characters):
    _, _, factory = roll(characters, {(0, 0): "#2$"}, [ValueError("bug")], retries=3)
    assert len(factory.made) == 1


def test_engine_and_episode_deadlines(characters):
    slow = ScriptedEngine(characters, {(0, 0): "#2$"}, seconds=1000)
    group, _, _ = roll(characters, {}, [DONE], engine=slow, engine_seconds=100)
    assert group.failures[0].reason == "engine"
    assert "no answer in 100 s" in group.failures[0].detail
    slow = ScriptedEngine(characters, {(0, 0): "#2$"}, seconds=1000)
    group, _, _ = roll(characters, {}, [DONE], engine=slow, episode_seconds=200)
    assert group.failures[0].reason == "deadline"


def test_ids_outside_the_tokenizer_never_train(characters):
    group, _, _ = roll(characters, {(0, 0): [4, 21, 20]}, [DONE])
    assert group.failures[0].reason == "invalid_tokens"
    assert "got 21; expected < 21" in group.failures[0].detail


def test_cancelled_rollout_closes_its_environments(characters):
    slow = ScriptedEngine(characters, {(0, 0): "#2$", (1, 0): "#2$"}, seconds=1000)
    factory = ScriptedFactory([DONE])
    worker = RolloutWorker(engine=slow, factory=factory, tokenizer=characters, config=RolloutConfig())

    async def scenario():
        with anyio.move_on_after(1) as scope:
            await worker.roll(lease(2))
        assert scope.cancelled_caught

    play(scenario)
    assert [environment.closed for environment in factory.made] == [1, 1]


def test_a_rewritten_history_forks_the_row_and_is_counted(forgetful):
    replies = {(0, 0): "<think>a</think>go<|im_end|>", (0, 1): "2<|im_end|>"}
    settings = {"max_tokens": 64, "max_context": 4096}
    group, engine, _ = roll(forgetful, replies, [OBSERVED, DONE], **settings)
    (trajectory,) = group.trajectories
    assert len(trajectory.rows) == 2
    assert trajectory.metrics["rewritten"] == 1.0
    assert "think" not in forgetful.decode(engine.requests[1].prompt_ids.tolist(), special=True)
    assert forgetful.decode(trajectory.rows[0].token_ids.tolist(), special=True).endswith("</think>go<|im_end|>")
    assert trajectory.rows[1].action_tokens == len(forgetful.encode("2<|im_end|>"))
    assert sum(float(row.rewards.sum()) for row in trajectory.rows) == trajectory.reward
    assert [turn.row for turn in trajectory.turns] == [0, 1]
    group, engine, _ = roll(forgetful, replies, [OBSERVED, DONE], history="append", **settings)
    assert len(group.trajectories[0].rows) == 1
    assert group.trajectories[0].metrics["rewritten"] == 1.0
    assert "think" in forgetful.decode(engine.requests[1].prompt_ids.tolist(), special=True)


def test_nothing_grows_over_ten_thousand_episodes(characters):
    """Handles and tracked objects stay flat (trap 18)."""
    import gc

    import psutil

    class Flat(ScriptedFactory):
        def make(self):
            environment = super().make()
            self.made.clear()
            return environment

    engine = ScriptedEngine(characters, {(0, 0): "#2$"})
    worker = RolloutWorker(
        engine=engine, factory=Flat([DONE]), tokenizer=characters, config=RolloutConfig(max_tokens=8, max_context=64)
    )

    async def many(count):
        for index in range(count):
            await worker.roll(lease(1, group=f"g{index}"))
            engine.requests.clear()
            engine.lists.clear()
        gc.collect()
        return len(gc.get_objects()), psutil.Process().num_fds()

    play(lambda: many(200))
    objects, handles = play(lambda: many(200))
    later_objects, later_handles = play(lambda: many(10_000))
    assert later_handles <= handles
    assert later_objects < objects + 500


def test_a_close_that_fails_is_counted_and_costs_nothing(characters):
    factory = ScriptedFactory([DONE])
    factory.close_error = OSError("socket gone")
    group, _, _ = roll(characters, {(0, 0): "#2$"}, [DONE], factory=factory)
    assert group.trajectories[0].metrics["close_failed"] == 1.0
    assert group.trajectories[0].reward == DONE.reward


def test_a_factory_that_fails_is_a_failure_of_the_environment(characters):
    class Broken(ScriptedFactory):
        def make(self):
            raise EnvironmentFailure("no free slot")

    group, _, _ = roll(characters, {}, [], factory=Broken())
    assert group.failures[0] == Failure(trajectory_id="g0/0", reason="environment", detail="no free slot")


def test_an_environment_may_name_the_reason(characters):
    class Late(EnvironmentFailure):
        reason = "reward_timeout"

    group, _, _ = roll(characters, {(0, 0): "#2$"}, [Late("no verdict")])
    assert group.failures[0].reason == "reward_timeout"


def test_tokens_of_failed_attempts_are_in_the_failure_and_ids_never_meet(characters):
    """Two attempts of 3 + 3 tokens, each failing at its second step."""
    answers = [OBSERVED, EnvironmentFailure("gone")]
    group, engine, _ = roll(characters, {(0, 0): "#2$", (0, 1): "#3$"}, answers, retries=1)
    assert group.failures[0].tokens == 12
    ids = [request.request_id for request in engine.requests]
    assert len(set(ids)) == 4
    assert len({name.rpartition("/")[0] for name in ids}) == 1, "one episode, one engine"
