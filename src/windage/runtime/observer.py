"""RunObserver: everything a run writes down about itself, and when it evaluates and checkpoints.

waits for    an evaluation (quiet engines in ``sync`` and ``lagged``), a checkpoint
unblocked by the engines' answers; the learner's acknowledgement
drops when   never: a metric that cannot be written stops the run (full disk), a tracking service never does
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from windage.errors import RunStopped, explain
from windage.learner.protocol import StepReport
from windage.queue.queue import Accepted, Retired, Retry, TrajectoryQueue
from windage.records import TrainBatch, TrajectoryGroup
from windage.report.samples import sample_record
from windage.rollout.evaluation import Evaluation
from windage.runtime.measure import measure_batch, measure_group, measure_report
from windage.runtime.metrics import Last, Metrics, Sum
from windage.runtime.pipeline import Step
from windage.runtime.progress import Progress
from windage.runtime.run_folder import RunFolder
from windage.runtime.sinks import Sinks
from windage.runtime.totals import Totals

__all__ = ["RunObserver"]


class RunObserver:
    """Measures groups, batches and reports; writes one line a step; evaluates and checkpoints on schedule.

    ``evaluate``    plays the held-out tasks; None when the recipe has none
    ``checkpoint``  saves the learner after batch ``step`` and prunes the store
    ``skips``       batches in a row that moved nothing, after which the run stops
    """

    def __init__(
        self,
        *,
        folder: RunFolder,
        sinks: Sinks,
        progress: Progress,
        queue: TrajectoryQueue,
        totals: Totals,
        bound: int,
        steps: int,
        evaluate: Callable[[], Awaitable[Evaluation]] | None,
        evaluate_every: int,
        checkpoint: Callable[[int], Awaitable[None]],
        checkpoint_every: int,
        tokens_generated: Callable[[], int],
        skips: int,
    ) -> None:
        self._folder = folder
        self._sinks = sinks
        self._progress = progress
        self._queue = queue
        self._totals = totals
        self._bound = bound
        self._steps = steps
        self._evaluate = evaluate
        self._evaluate_every = evaluate_every
        self._checkpoint = checkpoint
        self._checkpoint_every = checkpoint_every
        self._tokens_generated = tokens_generated
        self._skips = skips
        self._skipped = 0
        self._said: set[str] = set()
        self._metrics = Metrics()
        self._since = time.monotonic()
        self._tokens_before = 0

    def start(self) -> None:
        """The pipeline starts now: what came before (loading, warm start, evaluation) belongs to no step."""
        self._since = time.monotonic()
        self._tokens_before = self._tokens_generated()

    def batch_taken(self, batch: TrainBatch) -> None:
        """Measure the batch."""
        self._metrics += measure_batch(batch, bound=self._bound)

    def group_finished(self, group: TrajectoryGroup, outcome: Accepted | Retry | Retired) -> None:
        """Measure a finished group; a retry is counted, a retirement is said aloud."""
        self._metrics += measure_group(group)
        if isinstance(outcome, Retry):
            self._metrics.add("rollout/retries", Sum(1))
        if isinstance(outcome, Retired):
            detail = next((failure.detail for failure in group.failures if failure.detail), "")
            self._progress.note(f"group {group.group_id} was given up ({outcome.reason}) {detail}".rstrip())

    async def before_complete(self, step: int, report: StepReport, version: int) -> None:
        """Evaluate every ``evaluate_every`` batches; the last evaluation belongs to the end of the run."""
        self._watch_skips(step, report)
        done = step + 1
        if self._evaluate is None or not self._evaluate_every or done % self._evaluate_every or done >= self._steps:
            return
        await self.evaluate(done, version)

    def _watch_skips(self, step: int, report: StepReport) -> None:
        """Say each skip aloud; stop after too many in a row."""
        if report.outcome != "skipped":
            self._skipped = 0
            return
        self._skipped += 1
        self._progress.note(f"batch {step} moved nothing: {report.reason}")
        if self._skipped >= self._skips:
            raise RunStopped(
                explain(
                    f"{self._skipped} batches in a row moved nothing",
                    got=report.reason,
                    expected=f"fewer than failures.skips={self._skips}",
                    do="lower learner.lr, or look at the last batches in metrics.jsonl; then windage resume",
                )
            )

    async def evaluate(self, done: int, version: int) -> Evaluation | None:
        """Play the held-out tasks after ``done`` batches and write the result down."""
        if self._evaluate is None:
            return None
        evaluation = await self._evaluate()
        self._folder.append_evaluation(done, {"version": version, **evaluation.as_dict()})
        for sample in evaluation.samples:
            self._folder.append_sample(done, sample_record(sample.trajectory, prompt=sample.prompt))
        self._progress.note(f"held-out after {done} batches: {evaluation}")
        return evaluation

    async def after_complete(self, step: Step) -> None:
        """Write the step's line, then checkpoint if it is time."""
        self.record(step)
        done = step.batch.step + 1
        if self._checkpoint_every and done % self._checkpoint_every == 0 and done < self._steps:
            await self._checkpoint(done)

    def record(self, step: Step) -> None:
        """Count the step and write its line."""
        self._totals.count(step)
        values = self._line(step)
        self._sinks.write(step.batch.step, values)
        self._progress.update({"step": step.batch.step, **values})
        self._metrics = Metrics()
        for sentence in self._queue.starved():
            if sentence not in self._said:
                self._said.add(sentence)
                self._progress.note(sentence)

    def _line(self, step: Step) -> Mapping[str, Any]:
        now = time.monotonic()
        elapsed, self._since = max(now - self._since, 1e-9), now
        tokens = self._tokens_generated()
        generated, self._tokens_before = tokens - self._tokens_before, tokens
        metrics = self._metrics
        metrics += measure_report(step.report)
        for name, seconds in step.seconds.items():
            metrics.add(f"time/{name}", Sum(seconds))
        metrics.add("time/step", Sum(elapsed))
        self._totals.seconds += elapsed
        metrics.add("speed/engine_tokens", Last(generated / elapsed))
        metrics.add("version", Last(step.version))
        for name, value in self._queue.ledger.counts().items():
            metrics.add(f"queue/{name}", Last(value))
        for name, value in self._totals.as_metrics(tokens_generated=tokens).items():
            metrics.add(name, Last(value))
        return metrics.plain()
