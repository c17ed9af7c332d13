"""summary.json: one run in one small file, and where it was made."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from windage.errors import DataError, explain
from windage.runtime.disk import write_atomically
from windage.runtime.json_lines import to_json

__all__ = ["LedgerCounts", "Summary", "provenance", "read_summary", "write_summary"]

_PACKAGES = ("windage", "torch", "transformers", "tokenizers", "numpy", "anyio", "pydantic", "reasoning-gym")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerCounts:
    """Groups by where they ended; ``admitted`` is the sum of the others."""

    admitted: int
    trained: int
    waiting: int
    in_flight: int
    failed: int
    expired: int
    rejected: int

    @property
    def closed(self) -> bool:
        """True when every admitted group is accounted for exactly once."""
        ends = self.trained + self.waiting + self.in_flight + self.failed + self.expired + self.rejected
        return self.admitted == ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The numbers of a run. ``eval_before`` and ``eval_after`` are held-out success shares, None when not evaluated.

    ``seconds`` is wall clock over all sessions of the run; ``extra`` holds machine, commit, versions and speed.
    """

    mode: str
    algorithm: str
    steps: int
    eval_before: float | None
    eval_after: float | None
    staleness_max: int
    staleness_bound: int
    ledger: LedgerCounts
    tokens_generated: int
    tokens_trained: int
    seconds: float
    extra: Mapping[str, Any] = field(default_factory=dict)


def write_summary(path: Path, summary: Summary) -> None:
    """Write the summary as JSON; ``extra`` keys come after the fixed ones.

    Raises:
        DataError: an extra key has the name of a fixed one, or the disk is full.
    """
    fixed = asdict(summary)
    extra = fixed.pop("extra")
    if clash := sorted(set(extra) & set(fixed)):
        raise DataError(explain("summary: extra keys shadow fixed ones", got=clash))
    write_atomically(path, to_json({**fixed, **extra}, indent=2) + "\n")


def read_summary(path: Path) -> dict[str, Any] | None:
    """The summary, or None when the run has not written one yet."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def provenance() -> dict[str, Any]:
    """Machine, commit and package versions."""
    return {"machine": _machine(), "commit": _commit(), "versions": _versions()}


def _machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return (
        f"{platform.system()} {platform.machine()}, {cores} cores, {memory:.0f} GiB, Python {platform.python_version()}"
    )


def _commit() -> str | None:
    """The commit of the source tree; None for an installed package."""
    source = Path(__file__).resolve().parents[3]
    git = shutil.which("git")
    if git is None or not (source / ".git").exists():
        return None
    answer = subprocess.run(  # noqa: S603 - fixed arguments
        [git, "-C", str(source), "rev-parse", "HEAD"], capture_output=True, text=True, check=False, timeout=10
    )
    return answer.stdout.strip() or None


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
