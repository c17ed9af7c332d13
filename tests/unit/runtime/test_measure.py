from __future__ import annotations

import numpy as np
import pytest

from windage.learner.protocol import StepReport
from windage.records import Failure, MicroBatch, Row, StopReason, Task, TrainBatch, Trajectory, TrajectoryGroup, Turn
from windage.runtime.measure import measure_batch, measure_group, measure_report, wilson


def row(name="r0", *, trajectory="t0", versions=(3, 3), stop=StopReason.EOS):
    actions = len(versions)
    mask = np.array([False] + [True] * actions)
    return Row(
        row_id=name,
        trajectory_id=trajectory,
        group_id="g",
        token_ids=np.arange(actions + 1, dtype=np.int32),
        action_mask=mask,
        behavior_logprobs=np.where(mask, -0.5, np.nan).astype(np.float32),
        policy_version=np.array([-1, *versions], dtype=np.int32),
        rewards=np.zeros(actions + 1, dtype=np.float32),
        turn_ids=np.where(mask, 0, -1).astype(np.int32),
        stop_reason=stop,
    )


def member(name, *, reward, rows=1, stop=StopReason.EOS, **metrics):
    made = tuple(row(f"{name}-{i}", trajectory=name, stop=stop) for i in range(rows))
    turn = Turn(turn_id=0, row=0, start=1, stop=3, finish_reason="stop")
    return Trajectory(
        trajectory_id=name,
        group_id="g",
        task_id="task",
        rows=made,
        reward=reward,
        stop_reason=stop,
        turns=(turn,),
        metrics=metrics,
        started=1.0,
        finished=3.0,
    )


def group(*members, failures=()):
    task = Task(task_id="task", source="s")
    return TrajectoryGroup(group_id="g", task=task, position=0, trajectories=members, failures=failures)


def test_failures_are_counted_and_never_averaged_in():
    bad = Failure(trajectory_id="t9", reason="tool_timeout")
    values = measure_group(
        group(
            member("a", reward=1.0, success=1.0, tool_calls=2.0),
            member("b", reward=0.0, stop=StopReason.TRUNCATED, rows=2),
            failures=(bad,),
        )
    ).plain()
    assert values["rollout/reward"] == 0.5
    assert values["rollout/success"] == 1.0  # b does not report success
    assert values["rollout/episodes"] == 2
    assert values["rollout/failures"] == values["rollout/failed/tool_timeout"] == 1
    assert values["rollout/truncated"] == 0.5
    assert values["rollout/forks"] == 0.5
    assert values["rollout/env/tool_calls"] == 2.0
    assert values["rollout/seconds"] == 2.0


def batch():
    rows = (row("a"), row("b", versions=(3, 4)), row("c", stop=StopReason.TRUNCATED), row("d"), row("e"))
    return TrainBatch(
        step=2,
        version=5,
        rows=rows,
        rewards=np.array([1, 1, 0, 1, 0.5], dtype=np.float32),
        staleness=np.array([2, 2, 2, 0, 1], dtype=np.int32),
        trajectory_of=np.array([0, 0, 1, 2, 3], dtype=np.int32),
        group_of=np.array([0, 0, 0, 1, 1], dtype=np.int32),
        micro_batches=(MicroBatch(rows=(0, 1, 2, 3, 4), tokens=15),),
        group_ids=("g0", "g1"),
    )


def test_a_forked_episode_counts_once_in_the_reward_but_each_row_in_the_staleness():
    values = measure_batch(batch(), bound=3).plain()
    assert values["batch/reward"] == pytest.approx((1 + 0 + 1 + 0.5) / 4)
    assert values["batch/trajectories"] == 4
    assert values["staleness/mean"] == pytest.approx(7 / 5)
    assert (values["staleness/max"], values["staleness/bound"]) == (2, 3)
    assert values["staleness/mixed_rows"] == pytest.approx(1 / 5)
    assert values["batch/truncated"] == pytest.approx(1 / 5)
    assert values["batch/tokens"] == 10
    assert values["staleness/histogram"]["counts"][:4] == [1.0, 1.0, 3.0, 0.0]


def test_groups_without_spread_are_counted():
    from dataclasses import replace

    assert measure_batch(batch()).plain()["batch/constant_groups"] == 0.0
    flat = replace(batch(), rewards=np.array([1, 1, 1 + 1e-7, 1, 0.5], dtype=np.float32))
    assert measure_batch(flat).plain()["batch/constant_groups"] == 0.5


def test_the_learners_numbers_get_their_prefix_once():
    report = StepReport(
        step=0,
        outcome="updated",
        metrics={"loss": 1.0, "learner/kl": 2.0},
        histograms={"ratio": [1, 2]},
        seconds=2.0,
        tokens_trained=10,
        tokens_dropped=1,
    )
    values = measure_report(report).plain()
    assert values["learner/loss"] == 1.0
    assert values["learner/kl"] == 2.0
    assert values["learner/histogram/ratio"] == {"edges": [0.0, 1.0, 2.0], "counts": [1.0, 2.0]}
    assert values["speed/learner_tokens"] == 5.0
    assert values["tokens/dropped"] == 1


def test_wilson_interval_against_published_values():
    # Newcombe 1998 (Statistics in Medicine 17:857), Table I, method 3: 81/263 and 0/20
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)
    assert wilson(0, 0) == (0.0, 1.0)
