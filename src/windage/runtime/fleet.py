"""Fleet: the processes of a run on one machine and the parts that talk to them, opened and closed as one.

    learner ──publish──► publisher ──begin/commit──► engines ◄──generate── worker ◄── environment, tools

waits for    the learner to load its model; then (``serve``) each engine to serve the published version
unblocked by their ready messages; ``deadlines.start`` bounds the wait
fails when   a model is missing or broken: the child's own message is in the error
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio.abc

from windage.engines.embedded.launch import launch as launch_engine
from windage.engines.protocol import Engine
from windage.environments.protocol import EnvironmentFactory, TaskSource
from windage.environments.tool_math import ToolMath, ToolMathTasks
from windage.learner.client import LearnerClient
from windage.learner.launch import launch as launch_learner
from windage.learner.model_config import Qwen3RandomModel
from windage.learner.setup import LearnerSetup
from windage.processes import Child
from windage.publish.publisher import Publisher
from windage.rollout.character_tokenizer import save_character_tokenizer
from windage.rollout.evaluation import Evaluation, evaluate
from windage.rollout.lockstep import LockstepEngine
from windage.rollout.tokenizer import ChatTokenizer, load_tokenizer
from windage.rollout.worker import RolloutWorker
from windage.runtime.config import RunConfig
from windage.runtime.engines import EngineGroup
from windage.runtime.run_folder import RunFolder

__all__ = ["Fleet", "open_fleet"]


@dataclass(kw_only=True)
class Fleet:
    """Everything that runs. The engines start with :meth:`serve`, once there are weights to serve."""

    config: RunConfig
    learner: LearnerClient
    publisher: Publisher
    engines: EngineGroup
    environment: EnvironmentFactory
    tasks: TaskSource
    tokenizer: ChatTokenizer
    worker: RolloutWorker

    async def serve(self, background: anyio.abc.TaskGroup) -> None:
        """Start the engines on the published version and keep them alive in ``background``."""
        await background.start(self.engines.run, self.publisher.resync)

    async def evaluate(self) -> Evaluation:
        """One episode of each held-out task; in deterministic modes in lockstep, so that it repeats bit for bit."""
        settings = self.config.evaluation
        return await evaluate(
            engine=LockstepEngine(self.engines) if self.config.deterministic else self.engines,
            factory=self.environment,
            tokenizer=self.tokenizer,
            config=self.config.rollout,
            tasks=self.tasks.held_out(settings.tasks),
            temperature=settings.temperature,
            samples=settings.samples,
        )


@asynccontextmanager
async def open_fleet(config: RunConfig, folder: RunFolder, *, note: Callable[[str], None]) -> AsyncGenerator[Fleet]:
    """Start the learner and open the environment; everything is stopped on the way out.

    Raises:
        LearnerError, DataError, ConfigError: the model, tokenizer or data cannot be used.
    """
    async with AsyncExitStack() as stack:
        child, learner = await launch_learner(
            _learner_setup(config, folder),
            log=folder.logs / "learner.log",
            deadline=config.deadlines.start,
            call_deadline=config.deadlines.train,
            note=note,
        )
        stack.push_async_callback(child.stop)
        environment = ToolMath(config.environment, logs=folder.logs)
        stack.push_async_callback(environment.aclose)
        tokenizer = load_tokenizer(learner.model_folder)
        engines = EngineGroup(_engine_launcher(config, folder, learner), count=config.engine.count, note=note)
        publisher = Publisher(
            learner=learner,
            engines=lambda: engines.engines,
            running="recompute" if getattr(config.mode, "in_flight", False) else "drain",
            evict=engines.evict,
            note=note,
        )
        worker = RolloutWorker(
            engine=LockstepEngine(engines) if config.deterministic else engines,
            factory=environment,
            tokenizer=tokenizer,
            config=config.rollout,
        )
        yield Fleet(
            config=config,
            learner=learner,
            publisher=publisher,
            engines=engines,
            environment=environment,
            tasks=ToolMathTasks(config.environment, seed=config.seed, group_size=config.rollout.group_size),
            tokenizer=tokenizer,
            worker=worker,
        )


def _learner_setup(config: RunConfig, folder: RunFolder) -> LearnerSetup:
    tokenizer = None
    if isinstance(config.model, Qwen3RandomModel):
        tokenizer = str(save_character_tokenizer(folder.path / "tokenizer"))
    return LearnerSetup(
        learner=config.learner,
        model=config.model,
        algorithm={"name": config.algorithm.name, **config.algorithm.settings},
        seed=config.seed,
        tokenizer=tokenizer,
        publish_folder=str(folder.path / "weights"),
        temperature=config.rollout.temperature,
    )


def _engine_launcher(
    config: RunConfig, folder: RunFolder, learner: LearnerClient
) -> Callable[[int], Awaitable[tuple[Child, Engine]]]:
    changes = {"prefix_cache": False} if config.deterministic else {}

    async def launch(index: int) -> tuple[Child, Engine]:
        """From the base model, whose folder stays; ``resync`` then brings the published weights."""
        return await launch_engine(
            config.engine.for_model(learner.model_folder, vocab_size=learner.vocab_size, **changes),
            log=folder.logs / f"engine-{index}.log",
            name=f"engine {index}",
            deadline=config.deadlines.start,
        )

    return launch
