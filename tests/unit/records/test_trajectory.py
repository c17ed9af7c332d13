"""Records refuse what would silently train wrong."""

from __future__ import annotations

import numpy as np
import pytest

from windage.errors import RecordError
from windage.records import (
    Failure,
    MicroBatch,
    Row,
    StopReason,
    Task,
    TrainBatch,
    Trajectory,
    TrajectoryGroup,
    Turn,
)
from windage.records.codec import decode, encode


def row(**changes):
    """Prompt of 2, three sampled tokens, one observed, one sampled."""
    mask = np.array([0, 0, 1, 1, 1, 0, 1], bool)
    fields = dict(
        row_id="g0/0/0",
        trajectory_id="g0/0",
        group_id="g0",
        token_ids=np.arange(7, dtype=np.int32),
        action_mask=mask,
        behavior_logprobs=np.where(mask, -0.5, np.nan).astype(np.float32),
        policy_version=np.where(mask, [0, 0, 4, 4, 5, 0, 6], -1).astype(np.int32),
        rewards=np.array([0, 0, 0, 0, 0, 0, 1], np.float32),
        turn_ids=np.where(mask, [0, 0, 0, 0, 0, 0, 1], -1).astype(np.int32),
        stop_reason=StopReason.EOS,
    )
    fields.update(changes)
    return Row(**fields)


def trajectory(**changes):
    fields = dict(
        trajectory_id="g0/0",
        group_id="g0",
        task_id="t0",
        rows=(row(),),
        reward=1.0,
        stop_reason=StopReason.EOS,
        turns=(Turn(turn_id=0, row=0, start=2, stop=5, finish_reason="stop", text="<1+1>", observation="=2|"),),
        metrics={"success": 1.0},
    )
    fields.update(changes)
    return Trajectory(**fields)


def test_version_of_a_row_is_that_of_its_oldest_token():
    assert row().version == 4
    assert row().action_tokens == 4
    assert trajectory().version == 4


def test_row_without_actions_has_version_minus_one():
    empty = np.zeros(7, bool)
    silent = row(
        action_mask=empty,
        behavior_logprobs=np.full(7, np.nan, np.float32),
        policy_version=np.full(7, -1, np.int32),
        rewards=np.zeros(7, np.float32),
        turn_ids=np.full(7, -1, np.int32),
    )
    assert silent.version == -1
    assert silent.action_tokens == 0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rewards": np.zeros(6, np.float32)}, "disagree in length.*'rewards': 6.*all 7"),
        ({"token_ids": np.zeros((1, 7), np.int32)}, "1-D"),
        ({"action_mask": np.ones(7, bool)}, "first token is marked as sampled"),
        ({"policy_version": np.full(7, -1, np.int32)}, "without a policy version; got 4 of 4"),
        ({"turn_ids": np.array([-1, -1, 1, 1, 1, -1, 0], np.int32)}, "non-decreasing"),
        ({"behavior_logprobs": np.full(7, 0.5, np.float32)}, "positive behaviour log-prob"),
        ({"rewards": np.array([0, 0, 0, 0, 0, 0, np.nan], np.float32)}, "reward is not finite"),
        ({"rewards": np.array([0, 0, 0, 0, 0, 1, 0], np.float32)}, "did not sample"),
        ({"routes": np.zeros((2, 6, 2), np.uint8)}, "routes misshapen"),
    ],
)
def test_bad_rows_are_refused_at_the_door(changes, message):
    with pytest.raises(RecordError, match=message):
        row(**changes)


def test_nan_behaviour_logprob_is_legal_at_the_door():
    """A token without a usable log-prob is dropped and counted by TokenBatch; the row itself is kept."""
    logprobs = row().behavior_logprobs.copy()
    logprobs[3] = np.nan
    assert row(behavior_logprobs=logprobs).action_tokens == 4


def test_arrays_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        row().token_ids[0] = 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rows": ()}, "has no rows"),
        ({"rows": (row(group_id="g1"),)}, "belongs elsewhere"),
        ({"reward": float("inf")}, "not finite"),
    ],
)
def test_bad_trajectories_are_refused(changes, message):
    with pytest.raises(RecordError, match=message):
        trajectory(**changes)


def test_group_round_trip_is_exact():
    group = TrajectoryGroup(
        group_id="g0",
        task=Task(task_id="t0", source="tool_math", data={"question": "1+1?", "answer": 2}, group_size=2, seed=7),
        position=3,
        trajectories=(trajectory(),),
        failures=(Failure(trajectory_id="g0/1", reason="engine", detail="gone"),),
    )
    back = decode(encode(group), TrajectoryGroup)
    assert back.task == group.task
    assert back.failures == group.failures
    assert back.version == 4
    mine, theirs = group.rows[0], back.rows[0]
    for name in ("token_ids", "action_mask", "behavior_logprobs", "policy_version", "rewards", "turn_ids"):
        np.testing.assert_array_equal(getattr(mine, name), getattr(theirs, name))
        assert getattr(mine, name).dtype == getattr(theirs, name).dtype


def test_decode_checks_invariants_again():
    data = encode({"task_id": "", "source": "s"})
    with pytest.raises(RecordError, match="task_id is empty"):
        decode(data, Task)


@pytest.mark.parametrize("data", [b"", b"\xc1", encode(["not", "a", "task"])])
def test_decode_of_junk_is_a_record_error(data):
    with pytest.raises(RecordError):
        decode(data, Task)


def batch(**changes):
    fields = dict(
        step=0,
        version=6,
        rows=(row(), row()),
        rewards=np.ones(2, np.float32),
        staleness=np.array([2, 2], np.int32),
        trajectory_of=np.zeros(2, np.int32),
        group_of=np.zeros(2, np.int32),
        micro_batches=(MicroBatch(rows=(0, 1), tokens=14),),
        group_ids=("g0",),
    )
    fields.update(changes)
    return TrainBatch(**fields)


def test_batch_counts_action_tokens():
    assert batch().action_tokens == 8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rewards": np.ones(1, np.float32)}, "disagree in length"),
        ({"micro_batches": (MicroBatch(rows=(0,), tokens=7),)}, "every row exactly once"),
        ({"micro_batches": (MicroBatch(rows=(0, 1, 1), tokens=21),)}, "every row exactly once"),
        ({"staleness": np.array([2, -1], np.int32)}, "negative staleness"),
    ],
)
def test_bad_batches_are_refused(changes, message):
    with pytest.raises(RecordError, match=message):
        batch(**changes)


def test_stop_reasons():
    assert StopReason.EOS.terminal
    assert StopReason.ENV_DONE.terminal
    assert not StopReason.TRUNCATED.terminal
    assert not StopReason.ABORTED.terminal
