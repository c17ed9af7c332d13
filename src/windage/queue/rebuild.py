"""Rebuild: a batch from the log, row for row as the learner saw it the first time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from windage.assembly.batch import build_batch
from windage.errors import DataError, RecordError, StalenessError, explain
from windage.queue.store import Layout, Store
from windage.records import TrainBatch, TrajectoryGroup

__all__ = ["check_redone", "layout_of", "rebuild_batch", "redo_batches"]


def layout_of(batch: TrainBatch, groups: Sequence[TrajectoryGroup]) -> Layout:
    """Where the batch's rows come from: enough to build it again without the assembler.

    Raises:
        RecordError: the batch holds a row, or lists a group, that was not chosen.
    """
    named = {group.group_id: group for group in groups}
    if sorted(named) != sorted(batch.group_ids):
        raise RecordError(explain("the batch lists other groups", got=batch.group_ids, expected=sorted(named)))
    ordered = [named[name] for name in batch.group_ids]
    places = {id(row): (at, index) for at, group in enumerate(ordered) for index, row in enumerate(group.rows)}
    foreign = [row.row_id for row in batch.rows if id(row) not in places]
    if foreign:
        raise RecordError(
            explain("the batch holds rows that are not in its groups", got=foreign[:8], do="pass rows on unchanged")
        )
    return Layout(
        positions=tuple(group.position for group in ordered),
        rows=tuple(places[id(row)] for row in batch.rows),
        micro_batches=tuple(micro.rows for micro in batch.micro_batches),
    )


def rebuild_batch(store: Store, step: int, version: int) -> TrainBatch:
    """Batch ``step`` from its layout and the stored groups.

    Raises:
        DataError: it was pruned, or is damaged.
    """
    layout = store.layout(step)
    groups = [store.group(position) for position in layout.positions]
    return build_batch(groups, rows=layout.rows, micro_batches=layout.micro_batches, step=step, version=version)


def redo_batches(store: Store, first: int, completed: int) -> Iterator[TrainBatch]:
    """Completed batches ``first … completed-1``, one at a time.

    Raises:
        DataError: the checkpoint is ahead of the log, or the log no longer holds a batch.
    """
    if not 0 <= first <= completed:
        raise DataError(
            explain(
                "the checkpoint does not fit the store",
                got=f"a checkpoint after {first} batches",
                expected=f"0 to {completed}: what the store has completed",
                do="use checkpoint and store of the same run; after a power cut, an older checkpoint of it",
            )
        )
    lines = [line for line in store.batches() if first <= line.step < completed]
    return (rebuild_batch(store, line.step, line.version) for line in lines)


def check_redone(store: Store, step: int, outcome: str, version: int) -> None:
    """Compare a redone batch with the log.

    Raises:
        StalenessError: another outcome or version: rows that wait would carry versions that never existed.
    """
    logged = next((line for line in store.batches() if line.step == step), None)
    expected = None if logged is None else (logged.outcome, logged.version_after)
    if expected != (outcome, version):
        raise StalenessError(
            explain(
                f"batch {step} ended otherwise when it was trained again",
                got=(outcome, version),
                expected=expected,
                do="resume on the machine and with the software that made the checkpoint",
            )
        )
