"""The queue's own doors: what it refuses, what it says, and what it keeps over a reopening."""

from __future__ import annotations

import dataclasses

import pytest
from tests.pipeline.world import failure, make_group, tasks

from windage.assembly.config import AssemblyConfig
from windage.assembly.fifo import FifoAssembler
from windage.errors import ConfigError, RecordError, RunStopped, StalenessError
from windage.queue.config import QueueConfig
from windage.queue.pacing import Pacing
from windage.queue.queue import Accepted, Retired, Retry, TrajectoryQueue
from windage.records.codec import encode

PACING = Pacing.asynchronous(staleness=1, window=3, groups_per_step=2)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(path=None, *, pacing=PACING, clock=None, assembler=None, steps=None, **config) -> TrajectoryQueue:
    return TrajectoryQueue.open(
        path,
        pacing=pacing,
        assembler=assembler or FifoAssembler(AssemblyConfig()),
        config=QueueConfig(**config),
        steps=steps,
        clock=clock or Clock(),
    )


@pytest.fixture
def queue(clock):
    with opened(clock=clock) as queue:
        yield queue


def admit(queue: TrajectoryQueue, count: int):
    source = tasks(start=queue.admitted, sources=("easy", "hard"))
    return [queue.admit(next(source)) for _ in range(count)]


def finish_all(queue: TrajectoryQueue, leases, version: int = 0) -> None:
    for lease in leases:
        assert queue.finish(make_group(lease, versions=(version, version))) == Accepted()


def test_one_batch_through_all_states(queue):
    leases = admit(queue, 4)
    assert (queue.capacity(), queue.in_flight, queue.ready()) == (0, 4, False)
    finish_all(queue, leases[1:3])
    assert queue.ready(), "positions 1 and 2 are inside the window of 3"
    batch = queue.take(0, 0)
    assert batch.group_ids == ("t001", "t002")
    assert (queue.waiting, queue.capacity(), queue.ledger.waiting) == (0, 0, 2)
    queue.complete(0, "updated", 1)
    assert (queue.capacity(), queue.completed, queue.version, queue.ledger.trained) == (2, 1, 1, 2)
    assert queue.ledger.tokens() == {"sampled": 8, "trained": 8, "waiting": 0, "lost": 0}


def test_admit_without_a_slot_writes_nothing(queue):
    admit(queue, 4)
    with pytest.raises(RunStopped, match="without a free slot"):
        admit(queue, 1)
    assert len(list(queue._store.groups())) == 4 == queue.ledger.admitted


def test_retry_keeps_position_and_counts_attempts(queue):
    (lease,) = admit(queue, 1)
    for attempt in (1, 2):
        outcome = queue.finish(make_group(lease, failures=[failure()] * 2))
        assert isinstance(outcome, Retry)
        lease = outcome.lease
        assert (lease.position, lease.attempt, lease.group_id) == (0, attempt, "t000")
    assert queue.finish(make_group(lease, failures=[failure()] * 2)) == Retired("engine")
    assert (queue.retired, queue.in_flight, queue.capacity()) == (1, 0, 4)


@pytest.mark.parametrize(
    "change", [{"position": 3}, {"attempt": 1}, {"position": 1}], ids=["unknown", "late attempt", "other lease"]
)
def test_a_group_that_nobody_waits_for_is_refused(queue, change):
    lease = admit(queue, 2)[0]
    with pytest.raises(RecordError, match="a group came back"):
        queue.finish(dataclasses.replace(make_group(lease), **change))
    assert queue.in_flight == 2


def test_a_group_comes_back_once(queue):
    (lease,) = admit(queue, 1)
    finish_all(queue, [lease])
    with pytest.raises(RecordError, match="not in flight"):
        queue.finish(make_group(lease))


def test_a_version_above_the_learners_is_refused_at_the_door(queue):
    """Trap 4. While a batch is in training, its own version may be live already."""
    leases = admit(queue, 4)
    with pytest.raises(StalenessError, match="newer than the learner; got version 1; expected <= 0"):
        queue.finish(make_group(leases[0], versions=(0, 1)))
    finish_all(queue, leases[:2])
    queue.take(0, 0)
    assert queue.finish(make_group(leases[2], versions=(0, 1))) == Accepted()
    with pytest.raises(StalenessError, match=r"version 2; expected <= 1"):
        queue.finish(make_group(leases[3], versions=(1, 2)))


def test_a_group_beyond_the_bound_stops_the_run():
    with opened(pacing=Pacing.sync(groups_per_step=1)) as queue:
        finish_all(queue, admit(queue, 1))
        queue.take(0, 0)
        queue.complete(0, "updated", 1)
        finish_all(queue, admit(queue, 1), version=0)  # sampled by the weights before the publish
        with pytest.raises(StalenessError, match=r"t001 is too stale to train; got staleness 1 .*expected <= 0"):
            queue.take(1, 1)


@pytest.mark.parametrize(("step", "version"), [(1, 0), (0, 1), (-1, 0)])
def test_batches_are_taken_in_order_at_the_live_version(queue, step, version):
    finish_all(queue, admit(queue, 2))
    with pytest.raises(StalenessError, match="out of order"):
        queue.take(step, version)
    assert queue.waiting == 2


@pytest.mark.parametrize(
    ("step", "outcome", "version"), [(0, "updated", 0), (0, "updated", 2), (0, "skipped", 1), (1, "updated", 1)]
)
def test_versions_move_by_one_and_only_with_an_update(queue, step, outcome, version):
    finish_all(queue, admit(queue, 2))
    queue.take(0, 0)
    with pytest.raises(StalenessError, match="completed that was not taken, or at another version"):
        queue.complete(step, outcome, version)


def test_take_without_a_batch(queue):
    finish_all(queue, admit(queue, 1))
    with pytest.raises(RunStopped, match="batch 0 is not ready; got 1 groups waiting"):
        queue.take(0, 0)


def test_drain_waits_for_flights(queue):
    admit(queue, 1)
    with pytest.raises(RunStopped, match="drained too early; got 1 groups in flight"):
        queue.drain(0, 0)


def test_oldest_in_flight_is_named_with_its_age(queue, clock):
    assert queue.oldest_in_flight() == "none"
    first, _ = admit(queue, 2)
    clock.now = 41.0
    assert queue.oldest_in_flight() == "task 't000' (position 0, attempt 0) for 41 s"
    queue.finish(make_group(first, failures=[failure()] * 2))
    assert queue.oldest_in_flight() == "task 't001' (position 1, attempt 0) for 41 s"


class Youngest:
    """Another assembler: picks the youngest eligible group, and reverses the rows."""

    def choose(self, choices, count):
        for _ in range(count):
            choices.pick(choices.eligible()[-1])

    def build(self, groups, *, step, version):
        return FifoAssembler(AssemblyConfig(token_budget=5)).build(groups, step=step, version=version)


class Short(Youngest):
    def choose(self, choices, count):
        choices.pick(choices.eligible()[0])


class Forger(Youngest):
    def build(self, groups, *, step, version):
        batch = super().build(groups, step=step, version=version)
        rows = tuple(dataclasses.replace(row, row_id="forged") for row in batch.rows)
        return dataclasses.replace(batch, rows=rows)


def test_the_assembler_is_replaceable(tmp_path):
    pacing = Pacing.asynchronous(staleness=1, window=4, groups_per_step=2)
    with opened(tmp_path / "q.db", pacing=pacing, assembler=Youngest()) as queue:
        finish_all(queue, admit(queue, 4))
        batch = queue.take(0, 0)
        assert batch.group_ids == ("t002", "t003")
        assert [micro.rows for micro in batch.micro_batches] == [(0,), (1,), (2,), (3,)]
    with opened(tmp_path / "q.db", pacing=pacing) as queue:  # rebuilt without it, and with another budget
        assert encode(queue.take(0, 0)) == encode(batch)


@pytest.mark.parametrize(
    ("assembler", "message"), [(Short(), "another number of groups"), (Forger(), "rows that are not in its groups")]
)
def test_an_assembler_is_not_trusted(assembler, message):
    with opened(assembler=assembler) as queue:
        finish_all(queue, admit(queue, 3))
        with pytest.raises((StalenessError, RecordError), match=message):
            queue.take(0, 0)
        assert queue.waiting == 3


def test_reopening_finds_everything(tmp_path):
    path = tmp_path / "q.db"
    with opened(path) as queue:
        leases = admit(queue, 4)
        finish_all(queue, leases[:3])
        batch = queue.take(0, 0)
    with opened(path) as queue:
        assert [(lease.position, lease.attempt) for lease in queue.resumed] == [(3, 1)]
        assert queue.resumed[0].task == leases[3].task
        assert (queue.in_flight, queue.waiting, queue.completed, queue.capacity()) == (1, 1, 0, 0)
        assert queue.ready()
        assert encode(queue.take(0, 0)) == encode(batch)
        queue.complete(0, "updated", 1)
        assert (queue.capacity(), queue.ready()) == (2, False)
    with opened(path) as queue:
        assert queue.resumed[0].attempt == 2
        assert (queue.version, queue.completed, queue.capacity()) == (1, 1, 2)
        assert [encode(batch) for batch in queue.redo(0)] == [encode(batch)]


def test_a_crash_does_not_use_up_the_retries(tmp_path):
    path = tmp_path / "q.db"
    for _ in range(5):
        with opened(path, retries=1) as queue:
            lease = queue.resumed[0] if queue.resumed else admit(queue, 1)[0]
    with opened(path, retries=1) as queue:
        (lease,) = queue.resumed
        outcome = queue.finish(make_group(lease, failures=[failure()] * 2))
        assert isinstance(outcome, Retry)
        assert isinstance(queue.finish(make_group(outcome.lease, failures=[failure()] * 2)), Retired)


def test_a_run_keeps_its_pacing(tmp_path):
    opened(tmp_path / "q.db").close()
    with pytest.raises(ConfigError, match="cannot change its pacing"):
        opened(tmp_path / "q.db", pacing=Pacing.asynchronous(staleness=2, window=3, groups_per_step=2))
    opened(tmp_path / "q.db").close()  # the refused one gave its lock back


def test_a_starved_source_is_named():
    pacing = Pacing.asynchronous(staleness=39, window=80, groups_per_step=2)
    with opened(pacing=pacing, minimum_share=0.5) as queue:
        leases = admit(queue, 80)
        finish_all(queue, [lease for lease in leases if lease.task.source == "easy"])
        for step in range(16):
            queue.take(step, 0)
            queue.complete(step, "critic_only", 0)
        assert queue.starved() == [
            "source 'hard' is starved: 0% of 32 trained groups, but 50% of 80 admitted ones (0 lost)"
        ]


def test_constant_groups_are_counted(queue):
    leases = admit(queue, 2)
    group = make_group(leases[0])
    members = tuple(dataclasses.replace(trajectory, reward=1.0) for trajectory in group.trajectories)
    queue.finish(dataclasses.replace(group, trajectories=members))
    finish_all(queue, leases[1:])
    assert queue.constant_groups == 1
