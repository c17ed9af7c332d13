"""Frozen records that flow between stages: numpy, no torch (DESIGN 2, 5)."""

from windage.records.batch import MicroBatch, TrainBatch
from windage.records.lease import Lease
from windage.records.task import Task
from windage.records.trajectory import Failure, Row, StopReason, Trajectory, TrajectoryGroup, Turn

__all__ = [
    "Failure",
    "Lease",
    "MicroBatch",
    "Row",
    "StopReason",
    "Task",
    "TrainBatch",
    "Trajectory",
    "TrajectoryGroup",
    "Turn",
]
