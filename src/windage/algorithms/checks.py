"""Combinations of an algorithm with a run that cannot work, or that do nothing. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windage.algorithms.settings import Settings
from windage.algorithms.table import lookup
from windage.errors import ConfigError, explain

__all__ = ["check"]


def check(
    name: str,
    settings: Mapping[str, Any] | None = None,
    *,
    updates_per_batch: int = 1,
    asynchronous: bool = True,
    group_size: int | None = None,
    truncated_sampling: bool = False,
) -> tuple[str, ...]:
    """Validate an algorithm inside a run; returns notes for people, in words.

    Args:
        name: a name of the table.
        settings: its settings; the others are defaults.
        updates_per_batch: optimizer updates from one batch.
        asynchronous: rollouts may come from older policies.
        group_size: trajectories a task, if known.
        truncated_sampling: top-p or top-k cut the distribution sampled from, and the learner does not replay the cut.

    Raises:
        ConfigError: unknown name or setting; a correction that would be a no-op under staleness; groups of one for a
            group-relative method; ratios of distributions with different support.
    """
    entry = lookup(name)
    chosen = entry.parse(settings or {})
    _anchor_sees_the_lag(name, chosen, asynchronous)
    if "groups" in entry.needs and group_size == 1:
        raise ConfigError(
            explain(
                f"algorithm {name} compares trajectories of one task, and there is one",
                got="rollout.group_size=1",
                expected=">= 2",
                do="raise it, or choose sao, copc or ppo (they have a critic)",
            )
        )
    if truncated_sampling:
        raise ConfigError(
            explain(
                f"algorithm {name} forms ratios, and truncated sampling gives them different supports",
                got="top_p < 1 or top_k > 0",
                do="sample from the whole distribution (temperature is fine)",
            )
        )
    return tuple(_notes(name, chosen, updates_per_batch, asynchronous))


def _anchor_sees_the_lag(name: str, settings: Settings, asynchronous: bool) -> None:
    if asynchronous and getattr(settings, "anchor", "behavior") == "entry":
        raise ConfigError(
            explain(
                f"algorithm {name} would not see staleness",
                got="anchor=entry: the learner's own log-probs are on both sides of the ratio",
                expected="anchor=behavior in an asynchronous run",
                do="drop the setting, or choose areal, which weights the entry policy back to the engine",
            )
        )


def _notes(name: str, settings: Settings, updates_per_batch: int, asynchronous: bool) -> list[str]:
    notes: list[str] = []
    if updates_per_batch == 1 and (getattr(settings, "anchor", None) == "entry" or name == "areal"):
        notes.append(f"{name}: one update per batch, so the ratio to the entry policy is 1 and its clip never acts")
    if not asynchronous and updates_per_batch == 1 and getattr(settings, "anchor", None) == "behavior":
        notes.append(f"{name}: one update per batch at lag 0, so the clip sees only engine mismatch")
    if getattr(settings, "clip", None) == (1.0, 1.0) and name.startswith("copc"):
        notes.append(f"{name}: clip=(1, 1) leaves the returns uncorrected (plain GAE), as in copc_no_recompute")
    if getattr(settings, "band", None) == (0.0, float("inf")):
        notes.append(f"{name}: band=(0, inf) masks nothing")
    return notes
