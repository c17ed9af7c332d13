"""kill -9 of the controller at any statement of the store: after a resume every task is trained exactly once.

The kill is raised from inside the database call; what a killed process would leave, the database file and its log, is
copied at that moment, and the run goes on from the copy.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.test_modes import outcomes
from tests.pipeline.world import World, derived_bound, make_pipeline, open_queue, run, tasks

from windage.errors import DataError, StalenessError
from windage.queue.pacing import Pacing
from windage.queue.store import Store
from windage.records import TrainBatch
from windage.records.codec import encode

STEPS = 9


class Killed(BaseException):
    """The process is gone."""


class Mortal:
    """Patches the store so that statement ``at`` (or COMMIT number ``at``) kills, and copies the files first."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, heir: Path):
        self.left = -1
        self.heir = heir
        original = Store._run
        mortal = self

        def run_or_die(store, statement, values):
            mortal.left -= 1
            if mortal.left == 0:
                original(store, statement, values)  # the statement ran, its transaction did not end
                mortal.bequeath(store.path)
                raise Killed
            return original(store, statement, values)

        monkeypatch.setattr(Store, "_run", run_or_die)

    def bequeath(self, path: Path) -> None:
        for name in (path.name, f"{path.name}-wal"):
            if path.with_name(name).exists():
                shutil.copy(path.with_name(name), self.heir / name)


class Run:
    """One run over several lives: a learner with checkpoints, and what is durable between two lives."""

    def __init__(self, pacing, *, seed: int, folder: Path, every: int, fail_share=0.2, count: int | None = None):
        self.pacing, self.seed, self.folder, self.every, self.count = pacing, seed, folder, every, count
        self.fail_share = fail_share
        self.checkpoint: list[TrainBatch] = []  # what the saved weights were trained on
        self.log: dict[int, bytes] = {}  # batches as the learner saw them, by step
        self.world: World | None = None
        self.path = folder / "0"
        self.path.mkdir()

    def outcome_of(self, step: int) -> str:
        return outcomes(self.seed)(step)

    def live(self, life: int, mortal: Mortal, *, statements: int) -> bool:
        """Live until the kill or the end; True at the end."""
        mortal.heir = self.folder / str(life + 1)
        mortal.heir.mkdir()
        self.world = world = World(
            seed=self.seed + life, fail_share=self.fail_share, outcome_of=self.outcome_of, trained=list(self.checkpoint)
        )
        world.on_train = self.compare
        killed = False
        try:
            run(lambda: self._main(world, mortal, statements))
        except* Killed:  # anything else passes
            killed = True
        if killed:
            self.path = mortal.heir
        return not killed

    async def _main(self, world: World, mortal: Mortal, statements: int) -> None:
        mortal.left = statements
        with open_queue(self.path / "queue.db", pacing=self.pacing, steps=STEPS, retries=2) as queue:
            self.queue = queue
            version = sum(self.outcome_of(step) == "updated" for step in range(len(self.checkpoint)))
            for batch in queue.redo(len(self.checkpoint)):
                self.compare(batch)
                world.trained.append(batch)
                version += self.outcome_of(batch.step) == "updated"
                queue.redone(batch.step, self.outcome_of(batch.step), version)
            assert version == queue.version
            world.live = version
            world.on_complete = lambda step: self.save(world, queue, step.batch.step + 1)
            source = tasks(self.count, start=queue.admitted)
            await make_pipeline(world, queue, steps=STEPS, source=source).run()

    def compare(self, batch: TrainBatch) -> None:
        """A batch that is trained again must be the same, byte for byte."""
        assert self.log.setdefault(batch.step, encode(batch)) == encode(batch)

    def save(self, world: World, queue, done: int) -> None:
        if done % self.every == 0:
            self.checkpoint = list(world.trained)
            queue.checkpointed(done)


MODES = st.sampled_from(
    [
        (
            Pacing.asynchronous(staleness=2, window=4, groups_per_step=2),
            derived_bound(staleness=2, window=4, groups_per_step=2),
        ),
        (Pacing.asynchronous(staleness=0, window=1, groups_per_step=3), 0),
        (Pacing.lagged(2, groups_per_step=2), 2),
        (Pacing.sync(groups_per_step=2), 0),
    ]
)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), mode=MODES, every=st.sampled_from([1, 3, 100]), lives=st.integers(1, 4))
def test_killed_anywhere_every_task_is_trained_exactly_once(tmp_path_factory, seed, mode, every, lives):
    pacing, bound = mode
    draw = random.Random(seed)
    saga = Run(pacing, seed=seed, folder=tmp_path_factory.mktemp("saga"), every=every)
    with pytest.MonkeyPatch.context() as patch:
        mortal = Mortal(patch, saga.folder)
        ended = any(saga.live(life, mortal, statements=draw.randint(1, 60)) for life in range(lives))
        assert ended or saga.live(lives, mortal, statements=-1)
    world, queue = saga.world, saga.queue
    once = Counter(world.trained_tasks)
    assert set(once.values()) == {1}
    assert [batch.step for batch in world.trained] == list(range(STEPS))
    assert 0 <= min(world.staleness()) <= max(world.staleness()) <= bound
    counts = queue.ledger.counts()
    assert (counts["in_flight"], counts["waiting"]) == (0, 0)
    assert len(once) == STEPS * pacing.groups_per_step == counts["trained"] + counts["rejected"]
    assert counts["admitted"] == queue.admitted == len(once) + counts["failed"]


@settings(max_examples=10)
@given(seed=st.integers(0, 10**6), lives=st.integers(1, 3))
def test_lagged_stays_exact_over_kills(tmp_path_factory, seed, lives):
    """In-flight groups are rolled again before the version moves: every row is still exactly k versions old."""
    draw = random.Random(seed)
    saga = Run(Pacing.lagged(3, groups_per_step=2), seed=seed, folder=tmp_path_factory.mktemp("saga"), every=4)
    saga.outcome_of = lambda step: "updated"
    with pytest.MonkeyPatch.context() as patch:
        mortal = Mortal(patch, saga.folder)
        ended = any(saga.live(life, mortal, statements=draw.randint(10, 60)) for life in range(lives))
        assert ended or saga.live(lives, mortal, statements=-1)
    for batch in saga.world.trained:
        assert set(batch.staleness.tolist()) == {min(3, batch.step)}


def test_short_tail_survives_a_kill(tmp_path):
    for statements in range(20, 60, 3):
        folder = tmp_path / str(statements)
        folder.mkdir()
        saga = Run(Pacing.sync(groups_per_step=4), seed=1, folder=folder, every=2, fail_share=0.0, count=10)
        with pytest.MonkeyPatch.context() as patch:
            mortal = Mortal(patch, saga.folder)
            assert saga.live(0, mortal, statements=statements) or saga.live(1, mortal, statements=-1)
        assert [len(batch.group_ids) for batch in saga.world.trained] == [4, 4, 2]
        assert sorted(saga.world.trained_tasks) == [f"t{index:03d}" for index in range(10)]


def stopped(path: Path, *, steps: int, pacing, every: int = 0):
    """Run some steps and stop; the world."""
    world = World(seed=1)

    async def main():
        with open_queue(path, pacing=pacing, steps=steps) as queue:
            world.on_complete = lambda step: every and queue.checkpointed((step.batch.step + 1) // every * every)
            await make_pipeline(world, queue, steps=steps).run()

    run(main)
    return world


def test_capacity_after_recovery_is_capacity_as_if_nothing_had_happened(tmp_path):
    """Trap 5, at every possible moment of a run."""
    pacing = Pacing.asynchronous(staleness=1, window=3, groups_per_step=2)
    world = World(seed=4, fail_share=0.3)

    async def main():
        with open_queue(tmp_path / "a.db", pacing=pacing, steps=8, retries=1) as queue:
            original = queue.finish

            def finish_and_compare(group):
                outcome = original(group)
                folder = tmp_path / str(len(list(tmp_path.iterdir())))
                folder.mkdir()
                for name in ("a.db", "a.db-wal"):
                    shutil.copy(tmp_path / name, folder / name)
                with open_queue(folder / "a.db", pacing=pacing, steps=8, retries=1) as twin:
                    for name in ("admitted", "retired", "completed", "in_flight", "waiting", "version", "sources"):
                        assert getattr(twin, name) == getattr(queue, name), name
                    assert twin.capacity() == queue.capacity()
                    assert twin.ledger == queue.ledger
                    assert (twin.constant_groups, twin.dropped_rows) == (queue.constant_groups, queue.dropped_rows)
                    assert [lease.position for lease in twin.resumed] == sorted(queue._flights)
                return outcome

            queue.finish = finish_and_compare
            await make_pipeline(world, queue, steps=8).run()

    run(main)
    assert len(list(tmp_path.iterdir())) > 18


def test_redo_refuses_a_checkpoint_ahead_of_the_log_and_a_pruned_batch(tmp_path):
    pacing = Pacing.sync(groups_per_step=2)
    stopped(tmp_path / "a.db", steps=6, pacing=pacing, every=2)

    async def main():
        with open_queue(tmp_path / "a.db", pacing=pacing, steps=6) as queue:
            assert list(queue.redo(6)) == []
            with pytest.raises(DataError, match=r"checkpoint after 7 batches.*0 to 6"):
                queue.redo(7)
            with pytest.raises(DataError, match="batch 4 is not in the store any more; resume from the newest"):
                list(queue.redo(4))

    run(main)


def test_a_redone_batch_that_ends_otherwise_stops_the_run(tmp_path):
    pacing = Pacing.sync(groups_per_step=2)
    stopped(tmp_path / "a.db", steps=3, pacing=pacing)

    async def main():
        with open_queue(tmp_path / "a.db", pacing=pacing, steps=6) as queue:
            assert [batch.step for batch in queue.redo(1)] == [1, 2]
            queue.redone(1, "updated", 2)
            with pytest.raises(StalenessError, match=r"batch 2 ended otherwise.*skipped"):
                queue.redone(2, "skipped", 2)

    run(main)


def test_a_longer_run_continues_where_the_shorter_one_ended(tmp_path):
    pacing = Pacing.sync(groups_per_step=2)
    straight = stopped(tmp_path / "straight.db", steps=7, pacing=pacing)
    first = stopped(tmp_path / "a.db", steps=3, pacing=pacing)
    world = World(seed=9, live=3)

    async def main():
        with open_queue(tmp_path / "a.db", pacing=pacing, steps=7) as queue:
            await make_pipeline(world, queue, steps=7).run()

    run(main)
    assert [encode(batch) for batch in first.trained + world.trained] == [encode(batch) for batch in straight.trained]
