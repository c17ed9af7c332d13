from __future__ import annotations

import pytest

from windage.errors import ConfigError, RunStopped, StalenessError
from windage.queue.admission import Admission
from windage.queue.pacing import Pacing
from windage.queue.staleness import StalenessBound


def wave(door: Admission) -> int:
    """Admit all that fits."""
    count = door.capacity()
    for _ in range(count):
        door.admit()
    return count


def test_slots_are_freed_by_completed_batches_only():
    door = Admission(pacing=Pacing.asynchronous(staleness=2, window=8, groups_per_step=4))
    assert wave(door) == 12
    with pytest.raises(RunStopped, match="12 admitted, 0 retired, 0 batches completed"):
        door.admit()
    door.complete(0)
    assert wave(door) == 4
    door.retire()
    assert wave(door) == 1


def test_a_run_lets_nothing_in_that_no_batch_needs():
    door = Admission(pacing=Pacing.asynchronous(staleness=2, window=8, groups_per_step=4), steps=2)
    assert wave(door) == 8
    door.complete(0)
    assert wave(door) == 0
    door.retire()
    assert wave(door) == 1


def test_after_the_end_there_is_no_capacity():
    door = Admission(pacing=Pacing.sync(groups_per_step=4))
    door.admit()
    door.end()
    assert door.capacity() == 0
    door.retire()
    assert door.capacity() == 0
    assert door.may_publish(0)


def test_the_barrier_waits_for_flights_and_for_holes():
    door = Admission(pacing=Pacing.lagged(1, groups_per_step=2))
    assert wave(door) == 4
    assert not door.may_publish(1)
    assert door.may_publish(0)
    door.retire()
    assert not door.may_publish(0), "the hole must be refilled at the old version first"
    door.admit()
    assert door.may_publish(0)
    assert Admission(pacing=Pacing.asynchronous(staleness=1, window=2, groups_per_step=2)).may_publish(7)


def test_batches_complete_in_order():
    door = Admission(pacing=Pacing.sync(groups_per_step=1))
    with pytest.raises(StalenessError, match="out of order"):
        door.complete(1)


@pytest.mark.parametrize(
    ("pacing", "expected"),
    [
        (Pacing.sync(groups_per_step=8), (0, 1, True, 8, 0)),
        (Pacing.lagged(5, groups_per_step=8), (5, 1, True, 48, 5)),
        (Pacing.asynchronous(staleness=0, window=9, groups_per_step=8), (0, 1, True, 8, 0)),
        (Pacing.asynchronous(staleness=2, window=0, groups_per_step=8), (2, 8, False, 24, 3)),
        (Pacing.asynchronous(staleness=2, window=9, groups_per_step=8), (2, 9, False, 24, 3)),
        (Pacing.asynchronous(staleness=2, window=10, groups_per_step=8), (2, 10, False, 24, 4)),
        (Pacing.asynchronous(staleness=2, window=1, groups_per_step=8), (2, 1, False, 24, 2)),
    ],
)
def test_modes_as_numbers(pacing, expected):
    got = (pacing.staleness, pacing.window, pacing.barrier, pacing.ahead, pacing.bound.bound)
    assert got == expected


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Pacing.lagged(-1, groups_per_step=2),
        lambda: Pacing.sync(groups_per_step=0),
        lambda: Pacing.asynchronous(staleness=1, window=-3, groups_per_step=2),
    ],
)
def test_impossible_numbers(wrong):
    with pytest.raises(ConfigError, match="out of range"):
        wrong()


def test_bound_says_which_knob_binds():
    assert StalenessBound(2, 1, 8).explain().endswith("the window (W=1) adds nothing")
    assert "W=1 would give 2" in StalenessBound(2, 17, 8).explain()
    with pytest.raises(StalenessError, match="newer than the learner"):
        StalenessBound.staleness(1, 2)
    with pytest.raises(StalenessError, match="without a policy version"):
        StalenessBound.staleness(1, -1)
