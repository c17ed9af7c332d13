from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.pipeline.world import failure, make_group, tasks

from windage.queue.config import QueueConfig
from windage.queue.verdict import judge
from windage.records import Lease, Trajectory

TASK = next(tasks(group_size=4))
LEASE = Lease(task=TASK, group_id=TASK.task_id, position=0)


def judged(group, *, tries=0, **config):
    return judge(group, config=QueueConfig(**config), tries=tries, tokens=group.action_tokens)


def verdict(*, members, failures=(), min_group=2, retries=2, tries=0):
    group = make_group(LEASE, members=members, failures=failures)
    return judged(group, min_group=min_group, retries=retries, tries=tries)


@pytest.mark.parametrize(
    ("members", "failures", "tries", "kind", "reason"),
    [
        (4, [], 0, "accept", ""),
        (2, [failure()] * 2, 0, "accept", ""),
        (1, [failure()] * 3, 0, "retry", ""),
        (1, [failure()] * 3, 1, "retry", ""),
        (1, [failure()] * 3, 2, "retire", "engine"),
        (0, [failure("no_action", retry=False)] * 4, 0, "retire", "no_action"),
        (1, [failure("invalid_tokens", retry=False)] * 2 + [failure("engine")], 0, "retry", ""),
        (1, [failure("invalid_tokens", retry=False)] * 2 + [failure("engine")], 2, "retire", "invalid_tokens"),
    ],
)
def test_survivors_then_retries_then_the_reason(members, failures, tries, kind, reason):
    got = verdict(members=members, failures=failures, tries=tries)
    assert (got.kind, got.reason) == (kind, reason)


def test_tokens_are_waiting_or_wasted_by_reason():
    kept = verdict(members=3, failures=[failure("tool_timeout", tokens=7)])
    assert kept.wasted == {"tool_timeout": 7}
    thrown = verdict(members=1, failures=[failure("engine", tokens=5)] * 3)
    assert thrown.wasted == {"engine": 15, "retried": 2}
    given_up = verdict(members=1, failures=[failure("engine", tokens=5)] * 3, tries=2)
    assert given_up.wasted == {"engine": 15, "incomplete": 2}


def test_a_group_smaller_than_min_group_needs_all_its_members():
    task = next(tasks(group_size=1))
    lease = Lease(task=task, group_id=task.task_id, position=0)
    assert judged(make_group(lease), min_group=4).kind == "accept"
    assert judged(make_group(lease, failures=[failure()]), min_group=4).kind == "retry"


def with_rewards(*rewards: float):
    group = make_group(LEASE, members=len(rewards))
    members = tuple(dataclasses.replace(t, reward=r) for t, r in zip(group.trajectories, rewards, strict=True))
    return dataclasses.replace(group, trajectories=members)


@pytest.mark.parametrize(
    ("rewards", "constant"), [((1.0, 1.0, 1.0), True), ((1.0, 1.0 + 1e-12), True), ((1.0, 0.0), False), ((1.0,), False)]
)
def test_constant_groups_are_noticed(rewards, constant):
    assert judged(with_rewards(*rewards)).constant is constant


def test_a_trajectory_without_action_tokens_is_no_survivor():
    group = make_group(LEASE, members=2)

    def empty(trajectory: Trajectory) -> Trajectory:
        row = trajectory.rows[0]
        mute = dataclasses.replace(
            row,
            action_mask=np.zeros(len(row), bool),
            policy_version=np.full(len(row), -1, np.int32),
            turn_ids=np.full(len(row), -1, np.int32),
        )
        return dataclasses.replace(trajectory, rows=(mute,))

    group = dataclasses.replace(group, trajectories=tuple(empty(t) for t in group.trajectories))
    got = judged(group, min_group=1)
    assert (got.kind, got.loss, got.reason) == ("retire", "rejected", "no_action")
