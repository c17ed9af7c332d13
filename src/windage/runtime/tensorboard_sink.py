"""TensorBoard event files from plain protobufs: no torch, no tensorflow, no thread."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary  # pyright: ignore[reportAttributeAccessIssue]
from tensorboard.summary.writer.record_writer import RecordWriter

from windage.runtime.disk import disk_errors

__all__ = ["TensorBoardSink"]


class TensorBoardSink:
    """One event file a session. A resumed run starts with a mark that hides the steps that are made again."""

    name = "tensorboard"

    def __init__(self, folder: Path, *, first_step: int = 0) -> None:
        with disk_errors(folder):
            folder.mkdir(parents=True, exist_ok=True)
        session = len(list(folder.glob("*tfevents*")))  # readers sort sessions by name
        place = f"{int(time.time())}.{session:03d}.{socket.gethostname()}.{os.getpid()}"
        self._path = folder / f"events.out.tfevents.{place}"
        with disk_errors(self._path):
            self._file = self._path.open("wb")
        self._records = RecordWriter(self._file)
        self._put(Event(wall_time=time.time(), file_version="brain.Event:2"))
        if first_step > 0:
            mark = SessionLog(status=SessionLog.START)
            self._put(Event(wall_time=time.time(), step=first_step, session_log=mark))

    def write(self, step: int, values: Mapping[str, Any]) -> None:
        """Write one step's scalars and histograms.

        Raises:
            DataError: no space left on the disk.
        """
        items = [_summary_value(name, value) for name, value in values.items()]
        summary = Summary(value=[item for item in items if item is not None])
        self._put(Event(wall_time=time.time(), step=step, summary=summary))

    def close(self) -> None:
        """Close the event file."""
        with disk_errors(self._path):
            self._file.close()

    def _put(self, event: Any) -> None:
        with disk_errors(self._path):
            self._records.write(event.SerializeToString())
            self._records.flush()


def _summary_value(name: str, value: Any) -> Any:
    if isinstance(value, Mapping):
        return Summary.Value(tag=name, histo=_histogram(value["edges"], value["counts"]))
    if isinstance(value, int | float):
        return Summary.Value(tag=name, simple_value=float(value))
    return None


def _histogram(edges: list[float], counts: list[float]) -> Any:
    """TensorBoard's form: right edges of the bins, and moments taken at the middle of each bin."""
    middles = [(low + high) / 2 for low, high in pairwise(edges)]
    return HistogramProto(
        min=edges[0],
        max=edges[-1],
        num=sum(counts),
        sum=sum(middle * count for middle, count in zip(middles, counts, strict=True)),
        sum_squares=sum(middle * middle * count for middle, count in zip(middles, counts, strict=True)),
        bucket_limit=edges[1:],
        bucket=counts,
    )
