"""Lease: one admitted task, handed to a rollout."""

from __future__ import annotations

from dataclasses import dataclass

from windage.records.task import Task

__all__ = ["Lease"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """One admitted task. ``position`` is its admission index, kept by every re-issue; ``attempt`` counts re-issues.

    ``group_id`` names the group that must come back for this lease.
    """

    task: Task
    group_id: str
    position: int
    attempt: int = 0
