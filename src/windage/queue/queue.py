"""TrajectoryQueue: everything that decides between rollout and learner, in one place, without a single ``await``.

    admit() ─► in flight ─► finish() ─► waiting ─► take() ─► batch ─► complete() ─► trained
                  ▲            │  └► Retired: the hole is refilled      │
                  └── Retry ───┘                     slots are freed here, after the publish

Every transition is on disk before it counts (:mod:`windage.queue.store`), moves one task in the ledger, and keeps the
staleness bound (docs/staleness.md).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from windage.assembly.protocol import Assembler
from windage.errors import ConfigError, RecordError, RunStopped, StalenessError, explain
from windage.queue.admission import Admission
from windage.queue.config import QueueConfig
from windage.queue.ledger import Ledger
from windage.queue.pacing import Pacing
from windage.queue.picks import Picks
from windage.queue.rebuild import check_redone, layout_of, rebuild_batch, redo_batches
from windage.queue.sources import SourceShares
from windage.queue.stamps import Stamps
from windage.queue.store import GroupLine, Store
from windage.queue.verdict import Verdict, judge
from windage.queue.window import Window
from windage.records import Lease, Task, TrainBatch, TrajectoryGroup

__all__ = ["Accepted", "Lease", "Retired", "Retry", "TrajectoryQueue"]


@dataclass(frozen=True, slots=True)
class Accepted:
    """The group waits for its batch, and is durable."""


@dataclass(frozen=True, slots=True)
class Retry:
    """Too few survivors, and a service was to blame: roll ``lease`` again."""

    lease: Lease


@dataclass(frozen=True, slots=True)
class Retired:
    """The task is given up, with its reason; another one may take its slot."""

    reason: str


@dataclass(slots=True)
class _Flight:
    lease: Lease
    tries: int
    since: float


class TrajectoryQueue:
    """Single-threaded. Use :meth:`open`; a store that holds a run is continued where it stopped.

    ``resumed``    leases that were in flight when an earlier controller died: hand them out first
    ``completed``  batches that are over; the next one to take is ``completed``
    """

    def __init__(
        self,
        store: Store,
        *,
        pacing: Pacing,
        assembler: Assembler,
        config: QueueConfig,
        steps: int | None,
        clock: Callable[[], float],
    ) -> None:
        self.pacing = pacing
        self.ledger = Ledger()
        self.sources = SourceShares()
        self.constant_groups = 0
        self.dropped_rows = 0
        self.version = 0
        self.resumed: tuple[Lease, ...] = ()
        self._store = store
        self._assembler = assembler
        self._config = config
        self._clock = clock
        self._admission = Admission(pacing=pacing, steps=steps)
        self._flights: dict[int, _Flight] = {}
        self._pool: dict[int, TrajectoryGroup] = {}
        self._stamps: dict[int, Stamps] = {}
        self._window = Window(width=pacing.window, pool=self._pool)
        self._pending: TrainBatch | None = None
        self._pending_groups: list[tuple[int, str]] = []

    @classmethod
    def open(
        cls,
        path: Path | None,
        *,
        pacing: Pacing,
        assembler: Assembler,
        config: QueueConfig | None = None,
        steps: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> Self:
        """Open the store at ``path`` (None: in memory) and go on where it stopped.

        ``steps``  batches of the run, so that no task is let in that no batch needs. None: without end
        ``clock``  seconds, for the age of what is in flight

        Raises:
            DataError: the store is damaged, in use, or cannot be written.
            ConfigError: the store was written at another pacing.
        """
        config = config or QueueConfig()
        store = Store(path, durability=config.durability)
        queue = cls(store, pacing=pacing, assembler=assembler, config=config, steps=steps, clock=clock)
        try:
            queue._recover()
        except BaseException:
            store.close()
            raise
        return queue

    # -- what is where -----------------------------------------------------------------------------------------------

    @property
    def groups_per_step(self) -> int:
        """Groups in a batch."""
        return self.pacing.groups_per_step

    @property
    def admitted(self) -> int:
        """Tasks let in so far: where the task source goes on after a resume."""
        return self._admission.admitted

    @property
    def retired(self) -> int:
        """Tasks given up from flight; their slots were refilled."""
        return self._admission.retired

    @property
    def completed(self) -> int:
        """Batches that are over."""
        return self._admission.completed

    @property
    def in_flight(self) -> int:
        """Groups in rollout."""
        return len(self._flights)

    @property
    def waiting(self) -> int:
        """Finished groups without a batch."""
        return len(self._pool)

    def oldest_in_flight(self) -> str:
        """The group that has been in rollout longest, by name, and for how long."""
        if not self._flights:
            return "none"
        flight = min(self._flights.values(), key=lambda flight: (flight.since, flight.lease.position))
        lease = flight.lease
        age = self._clock() - flight.since
        return f"task {lease.task.task_id!r} (position {lease.position}, attempt {lease.attempt}) for {age:.0f} s"

    def starved(self) -> list[str]:
        """A sentence for each source that the others starve."""
        return self.sources.starved(minimum=self._config.minimum_share)

    # -- admission ---------------------------------------------------------------------------------------------------

    def capacity(self) -> int:
        """Tasks that may be admitted now."""
        return self._admission.capacity()

    def admit(self, task: Task) -> Lease:
        """Let a task in; durable on return.

        Raises:
            RunStopped: there is no capacity.
            RecordError: the task was admitted before.
        """
        lease = Lease(task=task, group_id=task.task_id, position=self._admission.admitted)
        if self._admission.capacity() > 0:  # without capacity the next line raises, and nothing is written
            self._store.admit(lease)
        self._admission.admit()
        self._flights[lease.position] = _Flight(lease, 0, self._clock())
        self._window.admit(lease.position)
        self.sources.admitted[task.source] += 1
        self.ledger.admit()
        return lease

    def end(self) -> None:
        """The task source is exhausted: no more capacity, and the tail may be drained."""
        self._admission.end()

    def may_publish(self) -> bool:
        """False while a mode with a barrier waits for groups in flight, or for a hole to be refilled."""
        return self._admission.may_publish(self.in_flight)

    # -- finishing ---------------------------------------------------------------------------------------------------

    def finish(self, group: TrajectoryGroup) -> Accepted | Retry | Retired:
        """A rollout came back: keep the group, hand its task out again, or give the task up. Durable on return.

        Raises:
            RecordError: nothing like it is in flight.
            StalenessError: a token is stamped with a version that does not exist yet.
        """
        flight = self._flight_of(group)
        stamps = Stamps.of(group)
        self._check_versions(group, stamps)
        verdict = judge(group, config=self._config, tries=flight.tries, tokens=stamps.tokens)
        if verdict.kind == "accept":
            return self._accept(group, stamps, verdict)
        if verdict.kind == "retry":
            return self._retry(group, flight, verdict)
        return self._retire(group, verdict)

    def _accept(self, group: TrajectoryGroup, stamps: Stamps, verdict: Verdict) -> Accepted:
        position = group.position
        self._store.finish(group, stamps, constant=verdict.constant, wasted=verdict.wasted)
        del self._flights[position]
        self._pool[position] = group
        self._stamps[position] = stamps
        self.constant_groups += verdict.constant
        self._waste(verdict)
        self.ledger.finish(tokens=stamps.tokens)
        return Accepted()

    def _retry(self, group: TrajectoryGroup, flight: _Flight, verdict: Verdict) -> Retry:
        old = flight.lease
        lease = Lease(task=old.task, group_id=old.group_id, position=old.position, attempt=old.attempt + 1)
        self._store.retry(group.position, attempt=lease.attempt, tries=flight.tries + 1, wasted=verdict.wasted)
        self._flights[group.position] = _Flight(lease, flight.tries + 1, self._clock())
        self._waste(verdict)
        return Retry(lease)

    def _retire(self, group: TrajectoryGroup, verdict: Verdict) -> Retired:
        self._store.lose([group.position], verdict.loss, verdict.reason, wasted=verdict.wasted)
        del self._flights[group.position]
        self._window.retire(group.position)
        self._admission.retire()
        self.sources.lost[group.task.source] += 1
        self._waste(verdict)
        self.ledger.lose(verdict.loss, verdict.reason)
        return Retired(verdict.reason)

    def _waste(self, verdict: Verdict) -> None:
        for reason, tokens in verdict.wasted.items():
            self.ledger.waste(reason, tokens)

    def _flight_of(self, group: TrajectoryGroup) -> _Flight:
        flight = self._flights.get(group.position)
        got = (group.position, group.group_id, group.attempt)
        if flight is None:
            raise RecordError(
                explain("a group came back that is not in flight", got=got, expected="one finish() per lease")
            )
        lease = flight.lease
        if got != (lease.position, lease.group_id, lease.attempt):
            raise RecordError(
                explain(
                    "a group came back for another lease",
                    got=got,
                    expected=(lease.position, lease.group_id, lease.attempt),
                    do="copy position, group_id and attempt from the lease",
                )
            )
        return flight

    def _check_versions(self, group: TrajectoryGroup, stamps: Stamps) -> None:
        live = self.version + (self._pending is not None)  # its publish may be over before complete() is called
        if stamps.newest > live:
            raise StalenessError(
                explain(
                    f"group {group.group_id} is newer than the learner",
                    got=f"version {stamps.newest}",
                    expected=f"<= {live}",
                    do="versions run backwards: resume from the run's own checkpoint and store",
                )
            )

    # -- batches -----------------------------------------------------------------------------------------------------

    def ready(self) -> bool:
        """True when ``take`` will find a whole batch inside the window."""
        return self._pending is not None or len(self._window.reachable(self.groups_per_step)) == self.groups_per_step

    def take(self, step: int, version: int) -> TrainBatch:
        """Batch ``step`` at the learner's ``version``; its composition is durable on return.

        A batch that was taken before a crash, but not completed, comes back row for row.

        Raises:
            StalenessError: a group breaks the bound; the step or version is not the next one.
            RunStopped: no batch is ready.
        """
        if not self.ready():
            raise RunStopped(explain(f"batch {step} is not ready", got=f"{self.waiting} groups waiting"))
        return self._take(step, version, self.groups_per_step)

    def drain(self, step: int, version: int) -> TrainBatch | None:
        """The last, shorter batch once the data has ended; None when nothing is left, or the policy drops it.

        Raises:
            RunStopped: groups are still in flight: their data is not at its end.
        """
        if self._pending is None and self._flights:
            raise RunStopped(explain("drained too early", got=f"{self.in_flight} groups in flight", expected="none"))
        if self._pending is None and self._config.tail == "drop":
            self._reject_tail()
        if self._pending is None and not self._pool:
            return None
        return self._take(step, version, min(len(self._pool), self.groups_per_step))

    def _take(self, step: int, version: int, count: int) -> TrainBatch:
        self._expect(step, version)
        if self._pending is not None:
            return self._pending
        picks = Picks(self._window)
        self._assembler.choose(picks, count)
        groups = picks.groups
        if len(groups) != count:
            raise StalenessError(
                explain("the assembler picked another number of groups", got=len(groups), expected=count)
            )
        bound = self.pacing.bound
        for group in groups:
            bound.check(group.group_id, oldest=self._stamps[group.position].oldest, version=version)
        batch = self._assembler.build(groups, step=step, version=version)
        dropped = sum(len(group.rows) for group in groups) - len(batch.rows)
        self._store.record_batch(step, version, layout_of(batch, groups), dropped=dropped)
        for group in groups:
            self._window.take(group.position)
            del self._pool[group.position]
        self.dropped_rows += dropped
        self._pending = batch
        self._pending_groups = [(group.position, group.task.source) for group in groups]
        return batch

    def _expect(self, step: int, version: int) -> None:
        if (step, version) != (self.completed, self.version):
            raise StalenessError(
                explain(
                    "a batch was taken out of order",
                    got=f"batch {step} at version {version}",
                    expected=f"batch {self.completed} at version {self.version}",
                    do="redo the logged batches from the checkpoint first (queue.redo)",
                )
            )

    def _reject_tail(self) -> None:
        tail = sorted(self._pool)
        self._store.lose(tail, "rejected", "tail", wasted={})
        for position in tail:
            group = self._pool.pop(position)
            self._window.take(position)
            self._settle(position, group.task.source, "tail")

    def complete(self, step: int, outcome: str, version: int) -> None:
        """Batch ``step`` is over (published, skipped, or critic only): its slots are free. Durable on return.

        Raises:
            StalenessError: it was not taken, or the version is not what the outcome implies.
        """
        expected = self.version + (outcome == "updated")
        if self._pending is None or self._pending.step != step or version != expected:
            raise StalenessError(
                explain(
                    "a batch was completed that was not taken, or at another version",
                    got=f"batch {step} ({outcome}) at version {version}",
                    expected=f"batch {self.completed} at version {expected}",
                )
            )
        self._store.complete(step, outcome, version)
        self._admission.complete(step)
        self.version = version
        self._pending = None
        for position, source in self._pending_groups:
            self._settle(position, source, "skipped" if outcome == "skipped" else None)
        self._pending_groups = []

    def _settle(self, position: int, source: str, rejected: str | None) -> None:
        """A waiting group ends: trained, or rejected with its reason."""
        tokens = self._stamps.pop(position).tokens
        if rejected:
            self.sources.lost[source] += 1
            self.ledger.lose("rejected", rejected, waiting_tokens=tokens)
        else:
            self.sources.trained[source] += 1
            self.ledger.train(tokens=tokens)

    # -- recovery ----------------------------------------------------------------------------------------------------

    def _recover(self) -> None:
        """Counters, order, ledger, pool and in-flight leases, from the store."""
        self._check_pacing()
        batches = self._store.batches()
        done = {line.step for line in batches if line.outcome is not None}
        for line in self._store.groups():
            self._recover_group(line, done)
        for reason, tokens in self._store.wasted().items():
            self.ledger.waste(reason, tokens)
        for line in batches:
            self.dropped_rows += line.dropped
            if line.step in done:
                self._admission.complete(line.step)
                self.version = line.version_after or 0
            else:
                self._pending = rebuild_batch(self._store, line.step, line.version)
        self.resumed = tuple(flight.lease for _, flight in sorted(self._flights.items()))

    def _check_pacing(self) -> None:
        wanted = json.dumps(self.pacing.as_dict(), sort_keys=True)
        found = self._store.meta().get("pacing")
        if found is None:
            self._store.set_meta({"pacing": wanted})
        elif found != wanted:
            raise ConfigError(
                explain(
                    "a run cannot change its pacing (mode, staleness, window, groups_per_step)",
                    got=wanted,
                    expected=found,
                    do="start a new run from its last checkpoint",
                )
            )

    def _recover_group(self, line: GroupLine, done: set[int]) -> None:
        """Replay one task's line through the ledger; put it back where it was."""
        self._admission.admitted += 1
        self.sources.admitted[line.source] += 1
        self.ledger.admit()
        if line.state == "in_flight":
            self._recover_flight(line)
        elif line.retired:
            self._admission.retire()
            self.sources.lost[line.source] += 1
            self.ledger.lose(line.loss, line.reason or "")
        else:
            self._recover_finished(line, done)

    def _recover_flight(self, line: GroupLine) -> None:
        """A task that was in flight is handed out again: same position, next attempt, as many tries left."""
        task = self._store.task(line.position)
        lease = Lease(task=task, group_id=task.task_id, position=line.position, attempt=line.attempt + 1)
        self._store.retry(line.position, attempt=lease.attempt, tries=line.tries, wasted={})
        self._flights[line.position] = _Flight(lease, line.tries, self._clock())
        self._window.admit(line.position)

    def _recover_finished(self, line: GroupLine, done: set[int]) -> None:
        self._window.admit(line.position)
        self._stamps[line.position] = line.stamps
        self.constant_groups += line.constant
        self.ledger.finish(tokens=line.stamps.tokens)
        if line.state == "waiting" and line.batch is None:
            self._pool[line.position] = self._store.group(line.position)
            return
        self._window.take(line.position)
        if line.batch is None or line.batch in done:  # the dropped tail, or a batch that is over
            self._settle(line.position, line.source, line.reason)
        else:
            self._pending_groups.append((line.position, line.source))

    def sync(self) -> None:
        """Make the log survive a power cut up to here: before a checkpoint, which must not be ahead of the log."""
        self._store.sync()

    def checkpointed(self, step: int) -> None:
        """A good checkpoint covers the batches before ``step``: their records are pruned to ledger lines."""
        self._store.prune(step)

    def redo(self, first: int) -> Iterator[TrainBatch]:
        """Completed batches ``first … completed-1`` from the log, row for row as they were trained.

        ``first`` is the number of batches that the loaded checkpoint covers. Train them again in order, check each with
        :meth:`redone`, publish the last version, and run the pipeline from ``completed``.

        Raises:
            DataError: the log no longer holds them, or the checkpoint is ahead of the log.
        """
        return redo_batches(self._store, first, self.completed)

    def redone(self, step: int, outcome: str, version: int) -> None:
        """Compare a redone batch with the log.

        Raises:
            StalenessError: it ended otherwise than the first time: waiting rows carry versions that do not exist.
        """
        check_redone(self._store, step, outcome, version)

    def close(self) -> None:
        """Close the store."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
