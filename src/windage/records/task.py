"""Task: one prompt of one source, asked ``group_size`` times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from windage.errors import RecordError, explain

__all__ = ["Task"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One prompt, as the environment's data source hands it out.

    ``task_id`` is unique within a run and reproducible: the same seed gives the same ids in the same order.
    ``data`` belongs to the environment (question, answer, …) and must survive a JSON round trip.
    ``seed`` starts every sampler of this task, so that a re-issued task draws the same tokens from the same weights.
    """

    task_id: str
    source: str
    data: Mapping[str, Any] = field(default_factory=dict)
    group_size: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.task_id:
            raise RecordError(explain("task_id is empty", expected="a string unique within the run"))
        if self.group_size < 1:
            raise RecordError(explain("group_size too small", got=self.group_size, expected=">= 1"))
