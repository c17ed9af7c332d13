"""Whatever goes wrong reaches the caller, with a name; nothing waits for ever."""

from __future__ import annotations

import re

import anyio
import pytest
from tests.pipeline.test_modes import play
from tests.pipeline.world import HOUR, World, failure, make_group, make_pipeline, open_queue, run, tasks

from windage.errors import DeadlineExceeded, LearnerError, PublishError, RunStopped
from windage.queue.pacing import Pacing
from windage.runtime.streak import FailureStreak

PACING = Pacing.asynchronous(staleness=1, window=4, groups_per_step=4)
MODES = [Pacing.sync(groups_per_step=4), Pacing.lagged(2, groups_per_step=4), PACING]


def only(raised: pytest.ExceptionInfo) -> BaseException:
    """The one error at the bottom of nested groups."""
    error = raised.value
    while isinstance(error, BaseExceptionGroup):
        assert len(error.exceptions) == 1
        error = error.exceptions[0]
    return error


def start(world: World, *, pacing=PACING, steps=10, source=None, retries=2, **settings):
    async def main():
        with open_queue(pacing=pacing, steps=steps, retries=retries) as queue:
            world.queue = queue
            await make_pipeline(world, queue, steps=steps, source=source, **settings).run()

    run(main)


@pytest.mark.parametrize("pacing", MODES)
def test_when_everything_fails_the_run_stops_with_the_reasons(pacing):
    world = World()

    async def roll(lease):
        await anyio.sleep(1.0)
        reason = ("engine", "tool_timeout")[lease.position % 2]
        return make_group(lease, failures=[failure(reason)] * 2)

    with pytest.raises(ExceptionGroup) as raised:
        start(world, pacing=pacing, roll=roll, streak=FailureStreak(limit=30))
    error = only(raised)
    assert isinstance(error, RunStopped)
    for part in (r"^30 groups in a row", r"engine x \d+", r"tool_timeout x \d+", r"last failure: \w+ said no$"):
        assert re.search(part, str(error))
    assert not world.trained
    assert world.queue.ledger.trained == 0


@pytest.mark.parametrize("stage", ["roll", "train", "publish", "source", "before_complete"])
def test_an_exception_in_any_stage_reaches_the_caller(stage):
    world = World()
    errors = {
        "roll": LookupError("no such tool"),
        "train": LearnerError("learner died"),
        "publish": PublishError("weights did not change"),
        "source": OSError("data set went away"),
        "before_complete": ValueError("evaluation broke"),
    }

    def broken(*_args):
        raise errors[stage]

    async def raises(*_args):
        await anyio.sleep(0.5)
        broken()

    def source():
        yield from tasks(9)
        broken()

    settings = {}
    if stage == "source":
        settings["source"] = source()
    elif stage in ("roll", "publish"):
        settings[stage] = raises
    else:
        setattr(world, stage, raises)
    with pytest.raises(ExceptionGroup) as raised:
        start(world, **settings)
    assert only(raised) is errors[stage]


@pytest.mark.parametrize("pacing", MODES)
def test_a_rollout_that_never_ends_is_named_by_the_deadline(pacing):
    world = World(duration_of=lambda lease, draw: 1e9 if lease.position == 2 else 1.0)
    with pytest.raises(ExceptionGroup) as raised:
        start(world, pacing=pacing, batch_seconds=2 * HOUR)
    error = only(raised)
    assert isinstance(error, DeadlineExceeded)
    assert "waited 7200 s" in str(error)
    assert "oldest in flight: task 't002' (position 2, attempt 0) for 72" in str(error)


def test_a_straggler_in_the_barrier_is_named_too():
    world = World(duration_of=lambda lease, draw: 1e9 if lease.position == 9 else 1.0)
    with pytest.raises(ExceptionGroup) as raised:
        start(world, pacing=Pacing.lagged(2, groups_per_step=4), batch_seconds=2 * HOUR)
    assert "1 groups in flight, 7 waiting, oldest in flight: task 't009'" in str(only(raised))


def test_a_task_that_always_fails_is_retired_and_the_hole_is_refilled():
    """Trap 12. Retries are spent on services only; then the reason is in the ledger."""
    world = World(fails=lambda lease: lease.task.task_id == "t003")
    world.started.clear()
    queue = play(world, pacing=PACING, steps=5, retries=2)
    assert queue.ledger.reasons() == {"failed": {"engine": 1}}
    assert queue.admitted == 21
    assert "t020" in world.trained_tasks
    assert "t003" not in world.trained_tasks
    world.check(queue, bound=2, drawn=21)


def test_skipped_batches_free_their_slots_and_move_no_version():
    """A gate in versions would stay shut for ever (decision 0002)."""
    world = World(outcome_of=lambda step: "skipped")
    queue = play(world, pacing=PACING, steps=6)
    assert (queue.version, len(world.trained)) == (0, 6)
    assert queue.ledger.reasons() == {"rejected": {"skipped": 24}}
    assert max(world.staleness()) == 0
    world = World(outcome_of=lambda step: "critic_only" if step < 4 else "updated")
    queue = play(world, pacing=PACING, steps=6)
    assert (queue.version, queue.ledger.trained) == (2, 24)
