"""The version moves only after every engine in rotation proved it (traps 9, 45, 47)."""

from dataclasses import dataclass, field

import anyio
import numpy as np
import pytest

from windage.engines.protocol import EngineStatus
from windage.errors import EngineError, EngineUnavailable, PublishError
from windage.learner.protocol import Published
from windage.publish.publisher import Publisher

pytestmark = pytest.mark.anyio
PROBE = np.array([5, 1, 2], dtype=np.int32)


@pytest.fixture
def anyio_backend():
    return "trio"


def scores(version):
    return np.array([np.nan, -1.0 - version, -2.0], dtype=np.float32)


@dataclass
class FakeLearner:
    written: list = field(default_factory=list)
    still: bool = False
    pause: anyio.Event | None = None

    async def publish(self, version):
        self.written.append(version)
        if self.pause is not None:
            await self.pause.wait()
        seen = 0 if self.still else version
        return Published(
            version=version,
            path=f"folder-{version}",
            fingerprint=f"weights-{seen}",
            probe_ids=PROBE,
            probe_logprobs=scores(seen),
        )


class FakeEngine:
    def __init__(self, name="engine 0", *, fail=None, error=None, deaf=False):
        self.name, self.fail, self.error, self.deaf = name, fail, error, deaf
        self.version, self.staged, self.calls = -1, None, []

    def __repr__(self):
        return self.name

    def _call(self, what):
        self.calls.append(what)
        if self.fail == what:
            raise self.error

    async def begin_update(self, version, path):
        await anyio.lowlevel.checkpoint()
        self._call("begin")
        self.staged = version

    async def commit_update(self, version, *, running="drain"):
        self._call("commit")
        if not self.deaf:
            self.version = self.staged
        return EngineStatus(
            policy_version=version,
            fingerprint=f"held-{self.version}",
            running=0,
            waiting=0,
            tokens_generated=0,
            vocab_size=9,
            device="cpu",
        )

    async def score(self, token_ids, *, temperature=1.0):
        self._call("score")
        assert token_ids[0] is PROBE
        return [scores(self.version)]


def publisher(*engines, learner=None, **settings):
    return Publisher(learner=learner or FakeLearner(), engines=lambda: list(engines), **settings)


async def test_every_engine_begins_before_one_commits():
    first, second = FakeEngine("a"), FakeEngine("b")
    order = []
    first.calls = second.calls = order
    one = publisher(first, second)
    await one.publish(0)
    assert order == ["begin", "begin", "commit", "score", "commit", "score"]
    assert (one.version, first.version, second.version) == (0, 0, 0)


@pytest.mark.parametrize("step", ["begin", "commit", "score"])
async def test_a_refusal_names_the_engine_and_moves_no_version(step):
    good, bad = FakeEngine("good"), FakeEngine("bad engine", fail=step, error=EngineError("no"))
    one = publisher(good, bad)
    with pytest.raises(PublishError, match="bad engine"):
        await one.publish(0)
    assert one.version == -1


async def test_an_engine_that_kept_its_old_weights_is_found_by_the_probe():
    deaf = FakeEngine("deaf engine", deaf=True)
    deaf.version = 7
    with pytest.raises(PublishError, match=r"deaf engine does not serve version 0 .*probe"):
        await publisher(deaf).publish(0)


async def test_a_change_too_small_for_the_probe_is_found_by_the_fingerprint():
    engine = FakeEngine("stuck engine")
    one = publisher(engine, tolerance=100.0)
    await one.publish(0)
    engine.deaf = True
    with pytest.raises(PublishError, match="unchanged fingerprint"):
        await one.publish(1)
    assert one.version == 0


async def test_equal_weights_need_no_new_fingerprint():
    one = publisher(FakeEngine(), learner=FakeLearner(still=True), tolerance=100.0)
    engine = one._engines()[0]
    await one.publish(0)
    engine.deaf = True
    await one.publish(1)
    assert one.version == 1


@pytest.mark.parametrize("nan", [True, False])
async def test_a_probe_without_a_number_proves_nothing(nan):
    engine = FakeEngine()

    async def score(token_ids, *, temperature=1.0):
        return [np.full(3, np.nan) if nan else np.zeros(2)]

    engine.score = score
    with pytest.raises(PublishError):
        await publisher(engine).publish(0)


@pytest.mark.parametrize("step", ["begin", "commit", "score"])
async def test_an_engine_that_left_rotation_is_skipped(step):
    good, gone = FakeEngine("good"), FakeEngine("gone", fail=step, error=EngineUnavailable("killed"))
    rotation, notes = [good, gone], []

    async def evict(engine):
        rotation.remove(engine)

    one = Publisher(learner=FakeLearner(), engines=lambda: list(rotation), evict=evict, note=notes.append)
    await one.publish(0)
    assert (one.version, good.version) == (0, 0)
    assert "killed" in notes[0]


async def test_an_engine_that_is_unreachable_but_still_in_rotation_stops_the_publish():
    gone = FakeEngine("gone engine", fail="begin", error=EngineUnavailable("killed"))
    with pytest.raises(PublishError, match="gone engine"):
        await publisher(FakeEngine(), gone).publish(0)


async def test_a_second_publish_waits_for_the_first():
    learner = FakeLearner(pause=anyio.Event())
    one = publisher(FakeEngine(), learner=learner)
    async with anyio.create_task_group() as group:
        group.start_soon(one.publish, 0)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(one.publish, 1)
        await anyio.wait_all_tasks_blocked()
        assert learner.written == [0]
        learner.pause.set()
    assert learner.written == [0, 1]
    assert one.version == 1


async def test_a_fresh_engine_is_brought_to_the_published_version():
    rotation = [FakeEngine("old")]
    one = Publisher(learner=FakeLearner(), engines=lambda: list(rotation))
    fresh = FakeEngine("fresh")
    await one.resync(fresh)
    assert fresh.calls == []
    await one.publish(0)
    await one.publish(1)
    await one.resync(fresh)
    assert fresh.version == 1


async def test_a_resync_waits_for_a_publish_and_misses_nothing():
    learner = FakeLearner(pause=anyio.Event())
    rotation = [FakeEngine("old")]
    one = Publisher(learner=learner, engines=lambda: list(rotation))
    fresh = FakeEngine("fresh")

    async def restart():
        await one.resync(fresh)
        rotation.append(fresh)

    async with anyio.create_task_group() as group:
        group.start_soon(one.publish, 0)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(restart)
        group.start_soon(one.publish, 1)
        await anyio.wait_all_tasks_blocked()
        learner.pause.set()
    assert one.version == 1
    assert fresh.version == 1
