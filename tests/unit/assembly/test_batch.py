from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.pipeline.world import make_group, make_row, tasks

from windage.assembly.batch import build_batch, trainable_rows
from windage.assembly.config import AssemblyConfig
from windage.assembly.fifo import FifoAssembler
from windage.errors import DataError, RecordError
from windage.records import Lease, Trajectory


def group(position: int, *, versions=(3, 4), prompt: int = 2):
    task = next(tasks(start=position))
    return make_group(Lease(task=task, group_id=task.task_id, position=position), versions=versions, prompt=prompt)


def forked(position: int):
    """One episode of two rows, and one of one row."""
    plain = group(position)
    first = plain.trajectories[0]
    fork = make_row(first.group_id, 0, versions=(5,), index=1)
    return dataclasses.replace(
        plain, trajectories=(dataclasses.replace(first, rows=(first.rows[0], fork)), plain.trajectories[1])
    )


def mute(trajectory: Trajectory) -> Trajectory:
    row = trajectory.rows[0]
    gone = {
        "action_mask": np.zeros(len(row), bool),
        "policy_version": np.full(len(row), -1, np.int32),
        "turn_ids": np.full(len(row), -1, np.int32),
    }
    return dataclasses.replace(trajectory, rows=(dataclasses.replace(row, **gone),))


def test_golden_batch():
    """Groups out of order; the second one forks. Rows: t1: 2 of episode 0, 1 of episode 1; t2: one each."""
    batch = FifoAssembler(AssemblyConfig(token_budget=8)).build([group(2), forked(1)], step=7, version=6)
    assert batch.group_ids == ("t001", "t002")
    assert [row.row_id for row in batch.rows] == ["t001/0/0", "t001/0/1", "t001/1/0", "t002/0/0", "t002/1/0"]
    assert batch.group_of.tolist() == [0, 0, 0, 1, 1]
    assert batch.trajectory_of.tolist() == [0, 0, 1, 2, 3]
    assert batch.rewards.tolist() == [0.0, 0.0, 1.0, 0.0, 1.0]
    assert batch.staleness.tolist() == [3, 1, 3, 3, 3], "version 6 less the oldest token of the row"
    assert [(micro.rows, micro.tokens) for micro in batch.micro_batches] == [((0, 2), 8), ((1,), 3), ((3, 4), 8)]
    assert (batch.step, batch.version, batch.action_tokens) == (7, 6, 9)


def test_rows_without_action_tokens_are_left_out():
    silent = group(0)
    silent = dataclasses.replace(silent, trajectories=(mute(silent.trajectories[0]), silent.trajectories[1]))
    assert trainable_rows([silent]) == [(0, 1)]
    batch = FifoAssembler(AssemblyConfig()).build([silent], step=0, version=4)
    assert [row.row_id for row in batch.rows] == ["t000/1/0"]


def test_a_row_newer_than_the_learner_is_refused():
    with pytest.raises(RecordError, match="negative staleness"):
        build_batch([group(0)], rows=[(0, 0)], micro_batches=[[0]], step=0, version=2)


def test_the_budget_is_kept_or_the_row_named():
    alone = FifoAssembler(AssemblyConfig(token_budget=10)).build([group(0, prompt=20)], step=0, version=4)
    assert [micro.tokens for micro in alone.micro_batches] == [22, 22]
    with pytest.raises(DataError, match=r"22 tokens; expected <= assembly.token_budget = 10"):
        FifoAssembler(AssemblyConfig(token_budget=10, long_rows="error")).build(
            [group(0, prompt=20)], step=0, version=4
        )
