"""The real pipeline under a virtual clock, with random durations, failures and outcomes."""

from __future__ import annotations

import random

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.world import World, derived_bound, make_pipeline, open_queue, run, tasks

from windage.queue.pacing import Pacing


def outcomes(seed: int):
    """A mix of outcomes that is a function of the step."""

    def outcome_of(step: int) -> str:
        return random.Random(f"{seed}/{step}").choices(("updated", "critic_only", "skipped"), (8, 1, 1))[0]

    return outcome_of


def play(world: World, *, pacing: Pacing, steps: int, source=None, deadline: float = 3.6e6, kind=None, **config):
    """One run from the start to the end; the closed queue."""
    queues = []

    async def main():
        extra = {} if kind is None else {"kind": kind}
        queue = open_queue(pacing=pacing, steps=steps, **extra, **config)
        queues.append(queue)
        with queue:
            await make_pipeline(world, queue, steps=steps, source=source).run()

    run(main, deadline=deadline)
    return queues[0]


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10**6),
    staleness=st.integers(0, 4),
    window=st.integers(1, 9),
    groups=st.integers(1, 4),
    fail_share=st.sampled_from([0.0, 0.2]),
    heavy=st.booleans(),
)
def test_async_keeps_the_bound_and_closes_the_ledger(seed, staleness, window, groups, fail_share, heavy):
    """Mutants that this must catch are in test_mutations.py."""
    slow = (lambda lease, draw: draw.paretovariate(0.7)) if heavy else (lambda lease, draw: draw.expovariate(1.0))
    world = World(seed=seed, fail_share=fail_share, outcome_of=outcomes(seed), duration_of=slow)
    pacing = Pacing.asynchronous(staleness=staleness, window=window, groups_per_step=groups)
    queue = play(world, pacing=pacing, steps=12, retries=1)
    width = 1 if staleness == 0 else window
    bound = derived_bound(staleness=staleness, window=width, groups_per_step=groups)
    world.check(queue, bound=bound, drawn=queue.admitted)
    assert len(world.trained) == 12
    assert not queue.waiting, "a run lets nothing in that no batch needs"


@pytest.mark.parametrize(
    ("staleness", "window", "groups"), [(1, 1, 2), (2, 4, 2), (2, 5, 4), (1, 9, 2), (3, 8, 3), (2, 2, 1), (4, 16, 4)]
)
def test_the_bound_is_reached(staleness, window, groups):
    """Tight: the group at position (S+1)P - 1 + ... starts with the rest, and is overtaken by W - 1 others."""
    bound = derived_bound(staleness=staleness, window=window, groups_per_step=groups)
    slow = (staleness + 1) * groups - 1  # the youngest group that starts at version 0

    def durations(lease, draw):
        if lease.position == slow:
            return 1000.0
        return 0.01 if lease.position < slow else 0.02

    world = World(duration_of=durations, train_seconds=lambda draw: 1.0)
    pacing = Pacing.asynchronous(staleness=staleness, window=window, groups_per_step=groups)
    queue = play(world, pacing=pacing, steps=bound + 6)
    world.check(queue, bound=bound, drawn=queue.admitted)
    assert max(world.staleness()) == bound == pacing.bound.bound


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), k=st.sampled_from([0, 1, 2, 5, 9]), fail_share=st.sampled_from([0.0, 0.25]))
def test_lagged_rows_are_exactly_k_versions_old(seed, k, fail_share):
    world = World(seed=seed, fail_share=fail_share)
    queue = play(world, pacing=Pacing.lagged(k, groups_per_step=3), steps=14, retries=1)
    for batch in world.trained:
        versions = {int(v) for row in batch.rows for v in row.policy_version[row.action_mask]}
        assert versions == {max(0, batch.step - k)}
        assert set(batch.staleness.tolist()) == {min(k, batch.step)}
    world.check(queue, bound=k, drawn=queue.admitted)


def test_lagged_64_runs():
    world = World(seed=3)
    play(world, pacing=Pacing.lagged(64, groups_per_step=1), steps=80)
    assert [int(batch.staleness.max()) for batch in world.trained] == [min(64, step) for step in range(80)]


@pytest.mark.parametrize("fail_share", [0.0, 0.3])
def test_sync_lagged_0_and_async_0_train_the_same_batches(fail_share):
    """Durations differ from run to run; which rows make which batch, and their versions, do not."""

    def failing(lease):
        return random.Random(f"{lease.task.seed}/{lease.attempt}").random() < fail_share

    def batches(pacing, seed):
        world = World(seed=seed, fails=failing)
        play(world, pacing=pacing, steps=8, retries=0)
        assert bool(world.retired) == bool(fail_share)
        return [
            (batch.group_ids, [row.token_ids.tolist() for row in batch.rows], batch.staleness.tolist(), batch.version)
            for batch in world.trained
        ]

    pacings = (
        Pacing.sync(groups_per_step=3),
        Pacing.lagged(0, groups_per_step=3),
        Pacing.asynchronous(staleness=0, window=7, groups_per_step=3),
    )
    runs = [batches(pacing, seed) for seed, pacing in enumerate(pacings)]
    assert runs[0] == runs[1] == runs[2]


def test_a_straggler_does_not_block_the_others():
    """One group takes 1000 s; with a window the learner goes on, in strict order it waits."""

    def time_of_batch_3(window):
        world = World(duration_of=lambda lease, draw: 1000.0 if lease.position == 1 else 1.0)
        times = {}
        world.on_complete = lambda step: times.setdefault(step.batch.step, trio.current_time())
        play(world, pacing=Pacing.asynchronous(staleness=2, window=window, groups_per_step=2), steps=10)
        return times[2], max(world.staleness())

    strict, strict_age = time_of_batch_3(1)
    ahead, age = time_of_batch_3(8)
    assert strict >= 1000.0
    assert ahead < 20.0
    assert (strict_age, age <= 6) == (2, True)


def test_after_a_pause_in_flight_work_returns_to_its_target_at_once():
    """Trap 14: a learner that stalls fills the pool; the surplus is kept and (S+1)P is the limit."""
    world = World(duration_of=lambda lease, draw: 0.1, train_seconds=lambda draw: 500.0)
    peaks = []
    world.on_train = lambda batch: peaks.append(len(world.finished_at))
    queue = play(world, pacing=Pacing.asynchronous(staleness=2, window=4, groups_per_step=4), steps=6)
    assert peaks[:3] == [12, 12, 16]
    world.check(queue, bound=3, drawn=24)


def test_epoch_and_step_limits_both_hold():
    world = World()
    queue = play(
        world, pacing=Pacing.asynchronous(staleness=1, window=4, groups_per_step=4), steps=100, source=tasks(23)
    )
    assert [len(batch.group_ids) for batch in world.trained] == [4, 4, 4, 4, 4, 3]
    world.check(queue, bound=2, drawn=23)
    world = World()
    queue = play(world, pacing=Pacing.asynchronous(staleness=1, window=4, groups_per_step=4), steps=3, source=tasks(23))
    assert (queue.admitted, len(world.trained)) == (12, 3)


@pytest.mark.parametrize("mode", ["sync", "lagged", "async"])
@pytest.mark.parametrize("tail", ["train", "drop"])
@pytest.mark.parametrize("count", [0, 1, 8, 9])
def test_end_of_data(mode, tail, count):
    pacing = {
        "sync": Pacing.sync(groups_per_step=4),
        "lagged": Pacing.lagged(2, groups_per_step=4),
        "async": Pacing.asynchronous(staleness=2, window=3, groups_per_step=4),
    }[mode]
    world = World(seed=count)
    queue = play(world, pacing=pacing, steps=50, source=tasks(count), tail=tail)
    full, rest = divmod(count, 4)
    sizes = [4] * full + ([rest] if rest and tail == "train" else [])
    assert [len(batch.group_ids) for batch in world.trained] == sizes
    lost = rest if tail == "drop" else 0
    assert queue.ledger.counts() == {
        "admitted": count,
        "trained": count - lost,
        "waiting": 0,
        "in_flight": 0,
        "failed": 0,
        "expired": 0,
        "rejected": lost,
    }
    if lost:
        assert queue.ledger.reasons() == {"rejected": {"tail": lost}}
