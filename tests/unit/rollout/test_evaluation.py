"""Evaluation: shares over the episodes that did not fail."""

from __future__ import annotations

from tests.rollout_fakes import ScriptedEngine, ScriptedFactory, play

from windage.environments.protocol import StepResult
from windage.errors import EngineUnavailable
from windage.records import Task
from windage.rollout.config import RolloutConfig
from windage.rollout.evaluation import evaluate
from windage.rollout.lockstep import LockstepEngine


def test_failures_are_counted_apart_and_samples_are_kept(characters):
    class ByTask(ScriptedFactory):
        """Even tasks are solved."""

        def make(self):
            environment = super().make()

            async def step(reply):
                good = float(len(self.made) % 2)
                return StepResult(reward=good, done=True, metrics={"success": good})

            environment.step = step
            return environment

    class Flaky(ScriptedEngine):
        async def generate(self, requests):
            if any("eval-3-" in request.request_id for request in requests):
                raise EngineUnavailable("gone")
            return await super().generate(requests)

    engine = Flaky(characters, {(0, 0): "#2$"})
    tasks = [Task(task_id=f"t{index}", source="s", group_size=8, seed=index) for index in range(5)]

    async def run():
        return await evaluate(
            engine=engine,
            factory=ByTask(),
            tokenizer=characters,
            config=RolloutConfig(max_tokens=8),
            tasks=tasks,
            temperature=0.0,
            samples=2,
        )

    result = play(run)
    assert result.episodes == 4
    assert result.failures == 1
    assert result.tokens == 3
    assert len(result.samples) == 2
    assert result.samples[0].prompt == "1+1?"
    assert {request.sampling.temperature for request in engine.requests} == {0.0}
    assert set(result.as_dict()) == {"success", "reward", "episodes", "failures", "tokens"}


def test_lockstep_evaluation_is_one_list(characters):
    inner = ScriptedEngine(characters, {(0, 0): "#2$"}, seconds=1.0)
    tasks = [Task(task_id=f"t{index}", source="s", seed=index) for index in range(3)]

    async def run():
        return await evaluate(
            engine=LockstepEngine(inner),
            factory=ScriptedFactory([StepResult(reward=1.0, done=True)]),
            tokenizer=characters,
            config=RolloutConfig(max_tokens=8),
            tasks=tasks,
            temperature=1.0,
        )

    result = play(run)
    assert result.success == 1.0
    assert len(inner.lists) == 1
