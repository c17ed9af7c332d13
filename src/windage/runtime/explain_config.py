"""What ``--dry-run`` prints: the resolved settings, then what they mean. Starts nothing, writes nothing."""

from __future__ import annotations

from collections.abc import Iterator

from windage.runtime.config import RunConfig
from windage.runtime.memory_estimate import estimate_memory
from windage.runtime.recipe import dump_config

__all__ = ["explain_config"]


def explain_config(config: RunConfig) -> str:
    """The resolved YAML, and under it the consequences as comments, so that the whole text is a recipe again."""
    notes = "".join(f"# {line}\n" for line in _notes(config))
    return f"{dump_config(config)}\n{notes}".rstrip()


def _notes(config: RunConfig) -> Iterator[str]:
    yield f"mode: {config.mode.name}; {config.pacing.bound.explain()}"
    yield _determinism(config)
    yield from _memory(config)


def _determinism(config: RunConfig) -> str:
    if config.deterministic:
        return "deterministic: yes, the same seed on the same machine gives the same bits"
    return "deterministic: no, which episode finishes first decides; mode=lagged is the reproducible form"


def _memory(config: RunConfig) -> Iterator[str]:
    estimate = estimate_memory(config)
    if estimate is None:
        yield "memory: not known before the model is on this machine"
    else:
        yield from estimate.lines()
