"""The learner as a process: calls over pipes, and every way it can end."""

import os
import signal

import anyio
import anyio.lowlevel
import numpy as np
import pytest
from tests.models import tiny_model
from tests.unit.learner.batches import make_batch

from windage.errors import ConfigError, DataError, DeadlineExceeded, LearnerError
from windage.learner.config import LearnerConfig
from windage.learner.launch import launch
from windage.learner.protocol import Demonstration
from windage.learner.setup import LearnerSetup

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_model(tmp_path_factory.mktemp("model") / "m")


def setup(model, folder, **settings):
    return LearnerSetup(
        learner=LearnerConfig(device="cpu", threads=1, lr=1e-3),
        model={"name": "path", "path": str(model)},
        publish_folder=str(folder / "versions"),
        **{"algorithm": {"name": "grpo"}, **settings},
    )


async def test_a_run_through_the_pipe_and_its_violent_end(model, tmp_path):
    lines = []
    child, client = await launch(setup(model, tmp_path), log=tmp_path / "log", note=lines.append)
    try:
        shown = [Demonstration(token_ids=np.arange(5, 9, dtype=np.int32), mask=np.array([False, True, True, True]))]
        assert (await client.warm_start(shown, steps=3))["steps"] == 3
        assert "warm start 3/3" in lines[-1]
        published = await client.publish(0)
        assert published.version == 0
        report = await client.train(make_batch(0))
        assert (report.outcome, report.tokens_trained) == ("updated", 42)
        await client.save(str(tmp_path / "checkpoint"))
        assert (await client.load(str(tmp_path / "checkpoint"))).step == 1
        status = await client.status()
        assert (status.version, status.step) == (0, 1)
        with pytest.raises(DataError, match="not a committed folder"):
            await client.load(str(tmp_path / "nowhere"))
        assert (await client.status()).step == 1
        assert client.vocab_size == 93
        await _kill_while_training(child, client)
    finally:
        await client.aclose()


async def _kill_while_training(child, client):
    """kill -9: the call in flight and every later one say how it ended, with the end of the log."""
    with child.log.open("a") as log:
        log.write("last words\n")
    async with anyio.create_task_group() as group:

        async def kill():
            os.kill(child.pid, signal.SIGKILL)

        group.start_soon(kill)
        with pytest.raises(LearnerError, match=r"(?s)SIGKILL.*last words"):
            for step in range(1, 10_000):
                await client.train(make_batch(step))
    with pytest.raises(LearnerError):
        await client.status()


async def test_a_call_past_its_deadline_kills_the_process(model, tmp_path):
    child, client = await launch(setup(model, tmp_path), log=tmp_path / "log", call_deadline=0.02)
    shown = [Demonstration(token_ids=np.arange(5, 9, dtype=np.int32), mask=np.array([False, True, True, True]))]
    try:
        with pytest.raises(DeadlineExceeded, match="warm_start"):
            await client.warm_start(shown, steps=100_000)
        assert await child.wait() == -signal.SIGKILL
    finally:
        await client.aclose()


async def test_a_setup_that_cannot_work_fails_at_launch(model, tmp_path):
    wrong = setup(model, tmp_path, algorithm={"name": "nonsense"})
    with pytest.raises(ConfigError, match="nonsense"):
        await launch(wrong, log=tmp_path / "log")
