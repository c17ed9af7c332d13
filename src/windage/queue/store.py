"""Store: the queue's write-ahead log in one SQLite file. What it has returned from is on disk, or the run has stopped.

    groups   one line a task for ever: its place in the ledger
    tasks    what to roll again, at least while the group is in flight
    records  the finished group, until a checkpoint covers its batch (apart, so that lines lie dense when it goes)
    batches  which rows make batch n, in which order and cut, written before the learner sees it
    wasted   sampled tokens that no task carries any more (failed members, retried attempts)

One writer: the file is locked while it is open. WAL without shared memory, so network file systems work.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from windage.errors import DataError, RecordError, explain
from windage.queue.ledger import Loss
from windage.queue.stamps import Stamps
from windage.records import Lease, Task, TrajectoryGroup
from windage.records.codec import decode, encode

__all__ = ["BatchLine", "GroupLine", "Layout", "Store"]

FORMAT = 1
_SCHEMA = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE groups (
  position INTEGER PRIMARY KEY, task_id TEXT NOT NULL UNIQUE, source TEXT NOT NULL, state TEXT NOT NULL, reason TEXT,
  attempt INTEGER NOT NULL, tries INTEGER NOT NULL, tokens INTEGER NOT NULL, oldest INTEGER NOT NULL,
  newest INTEGER NOT NULL, constant INTEGER NOT NULL DEFAULT 0, batch INTEGER);
CREATE INDEX groups_by_batch ON groups (batch) WHERE batch IS NOT NULL;
CREATE TABLE tasks (position INTEGER PRIMARY KEY, task TEXT NOT NULL);
CREATE TABLE records (position INTEGER PRIMARY KEY, crc INTEGER NOT NULL, record BLOB NOT NULL);
CREATE TABLE batches (
  step INTEGER PRIMARY KEY, version INTEGER NOT NULL, dropped INTEGER NOT NULL, layout BLOB, outcome TEXT,
  version_after INTEGER);
CREATE TABLE wasted (reason TEXT PRIMARY KEY, tokens INTEGER NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLine:
    """One task's line. ``state``: ``in_flight``, ``waiting``, ``trained``, or a :data:`~windage.queue.ledger.Loss`."""

    position: int
    task_id: str
    source: str
    state: str
    reason: str | None
    attempt: int
    tries: int
    tokens: int
    oldest: int
    newest: int
    constant: int
    batch: int | None

    @property
    def stamps(self) -> Stamps:
        """What its members sampled."""
        return Stamps(tokens=self.tokens, oldest=self.oldest, newest=self.newest)

    @property
    def retired(self) -> bool:
        """Given up from flight: its slot was refilled."""
        return self.batch is None and self.state in ("failed", "expired", "rejected") and self.reason != "tail"

    @property
    def loss(self) -> Loss:
        """How it was lost.

        Raises:
            DataError: it was not.
        """
        for loss in get_args(Loss):
            if self.state == loss:
                return loss
        raise DataError(explain(f"task {self.task_id!r} is not lost", got=self.state))


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Composition of a batch: positions of its groups, ``(group, row of the group)`` of its rows, and the cut."""

    positions: tuple[int, ...]
    rows: tuple[tuple[int, int], ...]
    micro_batches: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLine:
    """One batch. ``outcome`` and ``version_after`` are None until it is completed."""

    step: int
    version: int
    dropped: int
    outcome: str | None
    version_after: int | None


class Store:
    """Opens or creates the log. ``path=None`` keeps it in memory (tests, dry runs).

    ``durability``  ``process``: a transaction survives the death of the process (kill -9), not always a power cut;
                    ``power``: fsync per transaction

    Raises :class:`~windage.errors.DataError`: not a store, damaged, written by another process, or disk full.
    """

    def __init__(self, path: Path | None, *, durability: Literal["process", "power"] = "process") -> None:
        self.path = path
        with self._errors():
            self._database = sqlite3.connect(
                path or ":memory:", isolation_level=None, timeout=1.0, cached_statements=64
            )
        try:
            with self._errors():
                self._prepare(durability)
        except DataError:
            self._database.close()
            raise

    # -- writing -----------------------------------------------------------------------------------------------------

    def admit(self, lease: Lease) -> None:
        """A task was let in.

        Raises:
            RecordError: its id was let in before.
        """
        task = lease.task
        try:
            with self._write():
                self._run(
                    "INSERT INTO groups (position, task_id, source, state, attempt, tries, tokens, oldest, newest)"
                    " VALUES (?, ?, ?, 'in_flight', ?, 0, 0, -1, -1)",
                    (lease.position, task.task_id, task.source, lease.attempt),
                )
                self._run("INSERT INTO tasks VALUES (?, ?)", (lease.position, msgspec.json.encode(task).decode()))
        except sqlite3.IntegrityError as error:
            raise RecordError(
                explain(
                    "a task was admitted twice",
                    got=f"task {task.task_id!r} at position {lease.position}",
                    expected="ids that are unique within the run",
                    do="make the epoch part of the id; on resume start the source at queue.admitted",
                )
            ) from error

    def finish(self, group: TrajectoryGroup, stamps: Stamps, *, constant: bool, wasted: Mapping[str, int]) -> None:
        """A group came back and waits; durable on return."""
        record = encode(group)
        with self._write():
            self._run(
                "UPDATE groups SET state = 'waiting', tokens = ?, oldest = ?, newest = ?, constant = ?"
                " WHERE position = ?",
                (stamps.tokens, stamps.oldest, stamps.newest, constant, group.position),
            )
            self._run("INSERT INTO records VALUES (?, ?, ?)", (group.position, zlib.crc32(record), record))
            self._waste(wasted)

    def retry(self, position: int, *, attempt: int, tries: int, wasted: Mapping[str, int]) -> None:
        """A task is handed out again."""
        with self._write():
            self._run("UPDATE groups SET attempt = ?, tries = ? WHERE position = ?", (attempt, tries, position))
            self._waste(wasted)

    def lose(self, positions: Iterable[int], loss: Loss, reason: str, *, wasted: Mapping[str, int]) -> None:
        """Tasks ended untrained."""
        with self._write():
            self._end(positions, loss, reason)
            self._waste(wasted)

    def record_batch(self, step: int, version: int, layout: Layout, *, dropped: int) -> None:
        """Batch ``step`` has these rows; durable before it is trained."""
        with self._write():
            self._run(
                "INSERT INTO batches (step, version, dropped, layout) VALUES (?, ?, ?, ?)",
                (step, version, dropped, encode(layout)),
            )
            self._many("UPDATE groups SET batch = ? WHERE position = ?", ((step, p) for p in layout.positions))

    def complete(self, step: int, outcome: str, version: int) -> None:
        """Batch ``step`` is over; its tasks are trained, or rejected when it was skipped."""
        state, reason = ("rejected", "skipped") if outcome == "skipped" else ("trained", None)
        with self._write():
            self._run("UPDATE batches SET outcome = ?, version_after = ? WHERE step = ?", (outcome, version, step))
            self._run("UPDATE groups SET state = ?, reason = ? WHERE batch = ?", (state, reason, step))

    def prune(self, step: int) -> None:
        """Forget the records of batches before ``step``: a checkpoint covers them."""
        with self._write():
            self._run(
                "DELETE FROM records WHERE position IN (SELECT position FROM groups JOIN batches ON batch = step"
                " WHERE step < ? AND outcome IS NOT NULL AND layout IS NOT NULL)",
                (step,),
            )
            self._run(
                "DELETE FROM tasks WHERE position NOT IN"
                " (SELECT position FROM groups WHERE state = 'in_flight' AND position IN (SELECT position FROM tasks))",
                (),
            )
            self._run("UPDATE batches SET layout = NULL WHERE step < ? AND outcome IS NOT NULL", (step,))
        self.sync()

    def sync(self) -> None:
        """Return when everything so far survives a power cut too; the log file is empty then."""
        with self._errors():
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    # -- reading -----------------------------------------------------------------------------------------------------

    def groups(self) -> Iterator[GroupLine]:
        """Every task's line, by position."""
        columns = "position, task_id, source, state, reason, attempt, tries, tokens, oldest, newest, constant, batch"
        for row in self._rows(f"SELECT {columns} FROM groups ORDER BY position"):  # noqa: S608 - fixed names
            yield GroupLine(**dict(zip(columns.split(", "), row, strict=True)))

    def batches(self) -> list[BatchLine]:
        """Every batch's line, by step."""
        rows = self._rows("SELECT step, version, dropped, outcome, version_after FROM batches ORDER BY step")
        return [
            BatchLine(step=step, version=version, dropped=dropped, outcome=outcome, version_after=after)
            for step, version, dropped, outcome, after in rows
        ]

    def wasted(self) -> dict[str, int]:
        """Wasted tokens by reason."""
        return dict(self._rows("SELECT reason, tokens FROM wasted"))

    def task(self, position: int) -> Task:
        """The task of a group in flight."""
        found = self._rows("SELECT task FROM tasks WHERE position = ?", (position,))
        try:
            return msgspec.json.decode(found[0][0], type=Task)
        except (msgspec.DecodeError, IndexError) as error:
            raise self._damaged(f"task at position {position}", error) from error

    def group(self, position: int) -> TrajectoryGroup:
        """A finished group.

        Raises:
            DataError: its record was pruned, or does not match its checksum.
        """
        found = self._rows("SELECT crc, record FROM records WHERE position = ?", (position,))
        if not found:
            raise DataError(
                explain(
                    f"the group at position {position} is gone: a later checkpoint covered its batch",
                    do="resume from the newest checkpoint of the run",
                )
            )
        crc, record = found[0]
        if zlib.crc32(record) != crc:
            raise self._damaged(f"group at position {position}", "its checksum does not match")
        return decode(record, TrajectoryGroup)

    def layout(self, step: int) -> Layout:
        """Composition of batch ``step``.

        Raises:
            DataError: it was pruned, or damaged.
        """
        found = self._rows("SELECT layout FROM batches WHERE step = ?", (step,))
        if not found or found[0][0] is None:
            raise DataError(
                explain(f"batch {step} is not in the store any more", do="resume from the newest checkpoint of the run")
            )
        try:
            return decode(found[0][0], Layout)
        except RecordError as error:
            raise self._damaged(f"batch {step}", error) from error

    def meta(self) -> dict[str, str]:
        """What the run was opened with."""
        return dict(self._rows("SELECT name, value FROM meta"))

    def set_meta(self, values: Mapping[str, str]) -> None:
        """Keep what the run was opened with."""
        with self._write():
            self._many("INSERT OR REPLACE INTO meta VALUES (?, ?)", values.items())

    def close(self) -> None:
        """Close the file and give up its lock. Safe to call twice."""
        self._database.close()

    # -- inside ------------------------------------------------------------------------------------------------------

    def _prepare(self, durability: Literal["process", "power"]) -> None:
        run = self._database.execute
        run("PRAGMA locking_mode = EXCLUSIVE").fetchall()
        run("PRAGMA journal_mode = WAL").fetchall()
        run(f"PRAGMA synchronous = {'FULL' if durability == 'power' else 'NORMAL'}")
        run("PRAGMA secure_delete = OFF")
        run("BEGIN EXCLUSIVE")
        if not run("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _SCHEMA.split(";\n"):
                run(statement)
            run("INSERT INTO meta VALUES ('format', ?)", (str(FORMAT),))
        found = run("SELECT value FROM meta WHERE name = 'format'").fetchone()
        run("COMMIT")
        if found is None or found[0] != str(FORMAT):
            raise DataError(explain(f"{self.path}: unknown store format", got=found and found[0], expected=FORMAT))

    def _end(self, positions: Iterable[int], loss: Loss, reason: str) -> None:
        places = [(position,) for position in positions]
        self._many("UPDATE groups SET state = ?, reason = ? WHERE position = ?", [(loss, reason, *p) for p in places])
        self._many("DELETE FROM records WHERE position = ?", places)

    def _waste(self, wasted: Mapping[str, int]) -> None:
        self._many(
            "INSERT INTO wasted VALUES (?, ?) ON CONFLICT (reason) DO UPDATE SET tokens = tokens + excluded.tokens",
            [(reason, tokens) for reason, tokens in wasted.items() if tokens],
        )

    def _run(self, statement: str, values: Sequence[object]) -> None:
        self._database.execute(statement, values)

    def _many(self, statement: str, values: Iterable[Sequence[object]]) -> None:
        self._database.executemany(statement, values)

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._errors():
            return self._database.execute(statement, values).fetchall()

    @contextmanager
    def _write(self) -> Generator[None]:
        """One transaction: all of it, or none."""
        with self._errors():
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise

    @contextmanager
    def _errors(self) -> Generator[None]:
        """SQLite's errors as one clear message; a broken constraint passes, its caller knows what it means."""
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _explained(self, error: sqlite3.Error) -> DataError:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_FULL:
            return DataError(
                explain(f"disk full while writing {self.path}", do="free some space, then: windage resume")
            )
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return DataError(
                explain(f"{self.path} is in use", got=str(error), do="another process runs this run; stop it first")
            )
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            return DataError(explain(f"cannot write {self.path}", got=str(error), expected="a writable folder"))
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return self._damaged("the file", error)
        return DataError(explain(f"the store {self.path} failed", got=str(error)))

    def _damaged(self, what: str, why: object) -> DataError:
        return DataError(
            explain(
                f"{self.path} is damaged: {what} cannot be read",
                got=why,
                do="restore the run folder from a copy, or start a new run from its last checkpoint",
            )
        )
