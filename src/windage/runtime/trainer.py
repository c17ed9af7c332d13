"""The trainer: one run from its recipe to its summary, and the same run again after it was stopped.

train    learner ─► warm start ─► publish 0 ─► engines ─► evaluate ─► pipeline ─► evaluate ─► summary, report
resume   learner ─► newest complete checkpoint ─► redo logged batches ─► publish ─► engines ─► pipeline ─► …

Both are one path: a fresh run has an empty store, and makes its first checkpoint after the warm start.
"""

from __future__ import annotations

import time
from pathlib import Path

import anyio

from windage.assembly.fifo import FifoAssembler
from windage.errors import DataError, explain
from windage.queue.queue import TrajectoryQueue
from windage.report.build import build_report
from windage.rollout.evaluation import Evaluation
from windage.runtime.checkpoints import Checkpoints
from windage.runtime.config import RunConfig
from windage.runtime.demonstrations import tokenised
from windage.runtime.fleet import Fleet, open_fleet
from windage.runtime.observer import RunObserver
from windage.runtime.pipeline import Pipeline, Step
from windage.runtime.progress import Progress
from windage.runtime.recipe import dump_config, load_resolved
from windage.runtime.run_folder import RunFolder
from windage.runtime.sinks import Sinks, open_sinks
from windage.runtime.streak import FailureStreak
from windage.runtime.summary import LedgerCounts, Summary, provenance, write_summary
from windage.runtime.totals import Totals

__all__ = ["resume", "train"]


async def train(config: RunConfig, run_dir: Path, *, progress: Progress) -> None:
    """Train ``config`` into the new folder ``run_dir``.

    Raises:
        WindageError: what stopped the run; the folder is left so that :func:`resume` can go on.
    """
    folder = RunFolder.create(run_dir, config=dump_config(config))
    with folder.locked(), progress:
        await _run(config, folder, progress)


async def resume(run_dir: Path, *, progress: Progress) -> None:
    """Go on with the run in ``run_dir`` where its store stopped, under the settings it was started with.

    Raises:
        DataError: there is no run; otherwise as :func:`train`.
    """
    folder = RunFolder.open(run_dir)
    config = load_resolved(folder.config)
    with folder.locked(), progress:
        await _run(config, folder, progress)


async def _run(config: RunConfig, folder: RunFolder, progress: Progress) -> None:
    with TrajectoryQueue.open(
        folder.store,
        pacing=config.pacing,
        assembler=FifoAssembler(config.assembly),
        config=config.queue,
        steps=config.steps,
    ) as queue:
        async with open_fleet(config, folder, note=progress.note) as fleet, anyio.create_task_group() as background:
            await Session(config, folder, progress, queue, fleet).run(background)
            background.cancel_scope.cancel()
    build_report(folder.path)


class Session:
    """One sitting of a run: from the newest checkpoint to the end, with everything open."""

    def __init__(
        self, config: RunConfig, folder: RunFolder, progress: Progress, queue: TrajectoryQueue, fleet: Fleet
    ) -> None:
        self._config = config
        self._folder = folder
        self._progress = progress
        self._queue = queue
        self._fleet = fleet
        self._checkpoints = Checkpoints(folder.checkpoints, keep=config.checkpoint.keep)
        self._started = time.monotonic()
        self._seconds_before = 0.0

    async def run(self, background: anyio.abc.TaskGroup) -> None:
        """Bring the learner up to date, serve, train to the end, and write the summary."""
        self._folder.rewind(self._queue.completed)
        totals = Totals.of_lines(self._folder.read_metrics())
        self._seconds_before = totals.seconds
        sinks = open_sinks(
            self._config.tracking,
            self._folder,
            config=self._config.model_dump(mode="json"),
            first_step=totals.steps,
            note=self._progress.note,
        )
        try:
            observer = self._observer(totals, sinks)
            await self._redo(await self._restore(), observer, totals)
            await self._fleet.publisher.publish(self._queue.version)
            await self._fleet.serve(background)
            before = self._earlier_evaluation(0) or await observer.evaluate(0, self._queue.version)
            observer.start()
            await self._pipeline(observer).run()
            await self._checkpoint(self._queue.completed)
            after = await observer.evaluate(self._queue.completed, self._queue.version)
        finally:
            sinks.close()
        self._summarise(totals, before, after)

    async def _restore(self) -> int:
        """Load the newest checkpoint; without one, warm-start and make the first. The number of batches it covers."""
        covered = self._checkpoints.newest(at_most=self._queue.completed)
        if covered is not None:
            await self._fleet.learner.load(str(self._checkpoints.path(covered)))
            return covered
        if self._queue.completed:
            raise DataError(
                explain(
                    f"{self._folder.checkpoints} has no complete checkpoint",
                    got=f"{self._queue.completed} batches in the log",
                    expected="at least the checkpoint made before batch 0",
                )
            )
        await self._warm_start()
        await self._fleet.publisher.publish(0)
        await self._checkpoint(0)
        return 0

    async def _warm_start(self) -> None:
        settings = self._config.warm_start
        if not settings.steps:
            return
        self._progress.note(f"warm start: {settings.steps} supervised steps on demonstrations")
        rows = await anyio.to_thread.run_sync(
            lambda: tokenised(
                self._fleet.environment,
                self._fleet.tokenizer,
                count=settings.demonstrations,
                seed=self._config.seed,
            )
        )
        await self._fleet.learner.warm_start(rows, steps=settings.steps)

    async def _redo(self, covered: int, observer: RunObserver, totals: Totals) -> None:
        """Train the logged batches after the checkpoint again: the same weights and versions, nothing generated."""
        if covered < self._queue.completed:
            self._progress.note(f"redoing batches {covered} to {self._queue.completed - 1} from the log")
        version = (await self._fleet.learner.status()).version
        for batch in self._queue.redo(covered):
            report = await self._fleet.learner.train(batch)
            if report.outcome == "updated":
                version += 1
                await self._fleet.publisher.publish(version)
            self._queue.redone(batch.step, report.outcome, version)
            if batch.step >= totals.steps:  # the kill came between the batch and its line
                observer.batch_taken(batch)
                observer.record(Step(batch=batch, report=report, version=version))

    async def _checkpoint(self, done: int) -> None:
        if done not in self._checkpoints.complete():
            self._queue.sync()  # a checkpoint must never be ahead of the log, not even after a power cut
            await self._fleet.learner.save(str(self._checkpoints.path(done)))
        self._queue.checkpointed(done)
        self._checkpoints.rotate()

    def _observer(self, totals: Totals, sinks: Sinks) -> RunObserver:
        config = self._config
        return RunObserver(
            folder=self._folder,
            sinks=sinks,
            progress=self._progress,
            queue=self._queue,
            totals=totals,
            bound=config.pacing.bound.bound,
            steps=config.steps,
            evaluate=self._fleet.evaluate if config.evaluation.tasks else None,
            evaluate_every=config.evaluation.every,
            checkpoint=self._checkpoint,
            checkpoint_every=config.checkpoint.every,
            tokens_generated=lambda: self._fleet.engines.tokens_generated,
            skips=config.failures.skips,
        )

    def _pipeline(self, observer: RunObserver) -> Pipeline:
        config, queue = self._config, self._queue
        return Pipeline(
            source=self._fleet.tasks.train(start=queue.admitted),
            queue=queue,
            roll=self._fleet.worker.roll,
            expect=self._fleet.worker.expect,
            learner=self._fleet.learner,
            publish=self._fleet.publisher.publish,
            observer=observer,
            streak=FailureStreak(
                limit=config.failures.limit,
                first_pause=config.failures.first_pause,
                longest_pause=config.failures.longest_pause,
            ),
            steps=config.steps,
            version=queue.version,
            first_step=queue.completed,
            resumed=queue.resumed,
            batch_seconds=config.deadlines.batch,
        )

    def _earlier_evaluation(self, done: int) -> float | None:
        """Success of an evaluation that an earlier session wrote down."""
        lines = [line for line in self._folder.read_evaluations() if line["step"] == done]
        return float(lines[-1]["success"]) if lines else None

    def _summarise(self, totals: Totals, before: Evaluation | float | None, after: Evaluation | None) -> None:
        config = self._config
        counts = self._queue.ledger.counts()
        write_summary(
            self._folder.summary,
            Summary(
                mode=config.mode.name,
                algorithm=config.algorithm.name,
                steps=self._queue.completed,
                eval_before=before.success if isinstance(before, Evaluation) else before,
                eval_after=after.success if after else None,
                staleness_max=totals.staleness_max,
                staleness_bound=config.pacing.bound.bound,
                ledger=LedgerCounts(**counts),
                tokens_generated=totals.generated_before + self._fleet.engines.tokens_generated,
                tokens_trained=totals.tokens_trained,
                seconds=round(self._seconds_before + time.monotonic() - self._started, 2),
                extra=provenance(),
            ),
        )
        self._progress.note(f"summary: {self._folder.summary}")
