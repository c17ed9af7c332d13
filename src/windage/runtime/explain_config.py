"""What ``--dry-run`` prints: the resolved settings, then what they mean. Starts nothing, writes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from windage.learner.model_config import PathModel
from windage.runtime.config import RunConfig
from windage.runtime.config_rules import algorithm_notes
from windage.runtime.memory_estimate import estimate_memory
from windage.runtime.recipe import dump_config

__all__ = ["explain_config"]


def explain_config(config: RunConfig) -> str:
    """The resolved YAML, and under it the consequences as comments, so that the whole text is a recipe again."""
    notes = "".join(f"# {line}\n" for line in _notes(config))
    return f"{dump_config(config)}\n{notes}".rstrip()


def _notes(config: RunConfig) -> Iterator[str]:
    yield _model(config)
    yield f"mode: {config.mode.name}; {config.pacing.bound.explain()}"
    yield f"updates: {config.learner.updates_per_batch} optimizer update(s) for each published version"
    yield f"correction: {config.algorithm.name}. {config.algorithm.entry.summary}"
    yield from (f"correction: {note}" for note in algorithm_notes(config))
    yield _determinism(config)
    yield from _memory(config)


def _model(config: RunConfig) -> str:
    model = config.model
    if not isinstance(model, PathModel):
        return f"model: {model.name}, initialised from seed {model.seed}"
    if Path(model.path).expanduser().exists():
        return f"model: the folder {model.path}"
    if model.path.startswith((".", "/", "~")) or model.path.count("/") != 1:
        return f"model: NOT FOUND, there is no folder {model.path} on this machine; training would stop with an error"
    return f"model: {model.path} from the hub, taken from the cache or downloaded at the start"


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
