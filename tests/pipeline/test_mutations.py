"""Four known ways to break an asynchronous queue. Each is built here, and the suite's own checks must notice it."""

from __future__ import annotations

import gc
import random
import re
import warnings

import pytest
import trio
from tests.pipeline.world import World, derived_bound, make_pipeline, open_queue, run

from windage.errors import DeadlineExceeded, StalenessError
from windage.queue.ledger import Ledger
from windage.queue.pacing import Pacing
from windage.queue.queue import TrajectoryQueue
from windage.queue.window import Window
from windage.records import TrajectoryGroup
from windage.runtime.pipeline import Pipeline

STALENESS, WINDOW, GROUPS, STEPS = 1, 3, 2, 30


class QuietLedger(Ledger):
    """Counts, but never complains."""

    def check(self):
        pass


class Unasserted(TrajectoryQueue):
    """The queue without its own ledger assertion, so that the checks of the suite are what is tested."""

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self.ledger = QuietLedger()


class FreedBeforePublish(Unasserted):
    """Slots are freed when the learner takes the batch, before its version is live."""

    def take(self, step, version):
        batch = super().take(step, version)
        self._admission.complete(step)
        return batch

    def complete(self, step, outcome, version):
        self._admission.completed -= 1
        super().complete(step, outcome, version)


class SlidingWindow(Window):
    """Counts only positions without a batch: slides past a slow group for ever."""

    def take(self, position):
        self._live.remove(position)


class Unanchored(Unasserted):
    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        self._window = SlidingWindow(width=self.pacing.window, pool=self._pool)


class LosesGroups(Unasserted):
    """Says that it accepted every seventh group, and forgets it."""

    def _accept(self, group: TrajectoryGroup, stamps, verdict):
        outcome = super()._accept(group, stamps, verdict)
        if group.position % 7 == 5:
            del self._pool[group.position]
            self._window.retire(group.position)
        return outcome


class EvictsSilently(LosesGroups):
    """Forgets groups as well, and refills their slots, so that nothing ever stands still."""

    def _accept(self, group: TrajectoryGroup, stamps, verdict):
        outcome = super()._accept(group, stamps, verdict)
        if group.position not in self._pool:
            self._admission.retire()
        return outcome


class LosesRetries(Pipeline):
    """Does not roll a group again that the queue wants to retry."""

    async def _one_group(self, lease):
        group = await self.roll(lease)
        self.observer.group_finished(group, self.queue.finish(group))
        self._changes.notify()


class UnclosedStream(Pipeline):
    """The admitting stage leaves its output open."""

    async def _admit(self, leases):
        await super()._admit(leases.clone())


def heavy(lease, draw: random.Random) -> float:
    return min(draw.paretovariate(0.6), 3000.0)


def survives(*, queue_kind=Unasserted, pipeline_kind=Pipeline, seeds=range(6), fail_share=0.0) -> list[str]:
    """The complaints of the suite about one kind of queue or pipeline over some seeds; empty: it passed."""
    complaints: list[str] = []
    bound = derived_bound(staleness=STALENESS, window=WINDOW, groups_per_step=GROUPS)
    for seed in seeds:
        world = World(seed=seed, duration_of=heavy, fail_share=fail_share)

        async def main(world=world):
            pacing = Pacing.asynchronous(staleness=STALENESS, window=WINDOW, groups_per_step=GROUPS)
            with open_queue(pacing=pacing, steps=STEPS, kind=queue_kind, retries=5) as queue:
                await make_pipeline(world, queue, steps=STEPS, kind=pipeline_kind).run()
                world.check(queue, bound=bound, drawn=queue.admitted)

        try:
            run(main, deadline=1e7)
        except trio.TooSlowError:
            complaints.append("hangs")
        except ExceptionGroup as group:
            complaints += [type(error).__name__ for error in leaves(group)]
        except AssertionError as error:
            complaints.append(str(error).splitlines()[0])
    return complaints


def leaves(group: ExceptionGroup) -> list[BaseException]:
    return [
        leaf for error in group.exceptions for leaf in (leaves(error) if isinstance(error, ExceptionGroup) else [error])
    ]


def test_the_real_thing_survives():
    assert survives(queue_kind=TrajectoryQueue, fail_share=0.2) == []


@pytest.fixture
def no_bound(monkeypatch):
    """Take the queue's own staleness assertion away as well."""
    monkeypatch.setattr("windage.queue.staleness.StalenessBound.check", lambda self, group_id, oldest, version: 0)


@pytest.mark.usefixtures("no_bound")
def test_the_real_thing_survives_without_its_assertions():
    assert survives(fail_share=0.2) == []


@pytest.mark.usefixtures("no_bound")
@pytest.mark.parametrize(
    ("mutation", "fail_share", "complaint"),
    [
        ({"queue_kind": FreedBeforePublish}, 0.0, "staleness"),
        ({"queue_kind": Unanchored}, 0.0, "staleness"),
        ({"queue_kind": LosesGroups}, 0.0, "DeadlineExceeded"),
        ({"queue_kind": EvictsSilently}, 0.0, "a task vanished"),
        ({"pipeline_kind": LosesRetries}, 0.2, "DeadlineExceeded"),
        ({"pipeline_kind": UnclosedStream}, 0.0, "hangs"),
    ],
    ids=[
        "slot freed before publish",
        "unanchored window",
        "lost group",
        "silent eviction",
        "lost retry",
        "unclosed stream",
    ],
)
def test_mutation_is_caught(mutation, fail_share, complaint):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the stream that stays open says so when it is collected
        complaints = survives(**mutation, fail_share=fail_share)
        gc.collect()
    assert any(re.search(complaint, said) for said in complaints), complaints


@pytest.mark.parametrize("kind", [FreedBeforePublish, Unanchored])
def test_the_queue_itself_asserts_the_bound(kind):
    assert StalenessError.__name__ in survives(queue_kind=kind)


def test_a_lost_group_is_named_by_the_deadline():
    assert DeadlineExceeded.__name__ in survives(pipeline_kind=LosesRetries, fail_share=0.2)
