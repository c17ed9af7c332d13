"""Learner and engine as processes: a version is live when the engine scores and samples as the learner trained it."""

import anyio
import numpy as np
import pytest
from tests.models import tiny_model
from tests.unit.learner.batches import make_batch

from windage.engines.config import EngineConfig
from windage.engines.embedded.launch import launch as launch_engine
from windage.learner.config import LearnerConfig
from windage.learner.launch import launch as launch_learner
from windage.learner.setup import LearnerSetup
from windage.publish.publisher import Publisher

pytestmark = [pytest.mark.anyio, pytest.mark.process]


@pytest.fixture
def anyio_backend():
    return "asyncio"


async def test_versions_reach_a_real_engine(tmp_path):
    model = tiny_model(tmp_path / "m")
    setup = LearnerSetup(
        learner=LearnerConfig(device="cpu", threads=1, lr=1e-2),
        model={"name": "path", "path": str(model)},
        algorithm={"name": "grpo"},
        publish_folder=str(tmp_path / "versions"),
    )
    config = EngineConfig(model=str(model), device="cpu", threads=1, kv_tokens=2048)
    started = {}

    async def start(name, launching):
        started[name] = await launching

    async with anyio.create_task_group() as group:
        group.start_soon(start, "learner", launch_learner(setup, log=tmp_path / "learner.log"))
        group.start_soon(start, "engine", launch_engine(config, log=tmp_path / "engine.log"))
    learner_child, learner = started["learner"]
    engine_child, engine = started["engine"]
    try:
        publisher = Publisher(learner=learner, engines=lambda: [engine], tolerance=1e-4)
        first = await publisher.publish(0)
        assert (await learner.train(make_batch(0))).outcome == "updated"
        second = await publisher.publish(1)
        assert np.nanmax(np.abs(second.probe_logprobs - first.probe_logprobs)) > 1e-3
        assert (await engine.status()).policy_version == 1
        await publisher.resync(engine)
    finally:
        await engine.aclose()
        await engine_child.stop()
        await learner_child.stop()
