"""The small sections of a run's settings that belong to the run itself. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from windage.algorithms.entry import Entry
from windage.algorithms.table import lookup
from windage.engines.config import EngineConfig
from windage.errors import explain

__all__ = [
    "AlgorithmConfig",
    "CheckpointConfig",
    "DeadlineConfig",
    "EngineSettings",
    "EvaluationConfig",
    "FailureConfig",
    "WarmStart",
]


class AlgorithmConfig(BaseModel):
    """An algorithm by name with its own settings beside it: ``algorithm: {name: copc, clip: [0.8, 1.2]}``.

    Settings that are not given are filled in with that algorithm's defaults, so that a resolved recipe shows them.
    """

    model_config = ConfigDict(extra="allow", frozen=True, ser_json_inf_nan="constants")

    name: str = Field(default="copc", min_length=1, description="A name of windage.algorithms.names().")

    @model_validator(mode="before")
    @classmethod
    def _filled_in(cls, given: Any) -> Any:
        if not isinstance(given, Mapping) or not isinstance(given.get("name", "copc"), str):
            return given
        name = given.get("name", "copc")
        chosen = lookup(name).parse({key: value for key, value in given.items() if key != "name"})
        return {"name": name, **chosen.model_dump()}

    @property
    def settings(self) -> dict[str, Any]:
        """Everything but the name: keyword arguments of ``windage.algorithms.get``."""
        return dict(self.model_extra or {})

    @property
    def entry(self) -> Entry:
        """What is known of the algorithm without importing torch: summary, and what it needs."""
        return lookup(self.name)


class EngineSettings(EngineConfig):
    """``count`` engines, each started with these settings. Model and version come from the run, never from here."""

    model: str = Field(default="", exclude=True)
    policy_version: int = Field(default=-1, exclude=True)
    count: int = Field(default=1, ge=1, le=64, description="Engine processes; requests go to the least busy one.")

    @model_validator(mode="after")
    def _run_decides(self) -> Self:
        for name, owner in (("model", "the section `model`"), ("policy_version", "the run")):
            if name in self.model_fields_set:
                raise ValueError(explain(f"engine.{name} is decided by {owner}", do=f"remove engine.{name}"))
        return self

    def for_model(self, model: str, **changes: Any) -> EngineConfig:
        """The settings of one engine around the model folder ``model``."""
        own = self.model_dump(exclude={"count", "model", "policy_version"})
        return EngineConfig.model_validate({**own, "model": model, **changes})


class CheckpointConfig(BaseModel):
    """When the learner's state is saved. The store makes finished work durable in between; see recovery in the docs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    every: int = Field(default=20, ge=0, description="Batches between checkpoints; 0: only at the start and the end.")
    keep: int = Field(default=2, ge=1, description="Complete checkpoints kept; the last good one never goes.")


class EvaluationConfig(BaseModel):
    """Held-out tasks: played before the first batch, after the last one, and every ``every`` batches."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tasks: int = Field(default=128, ge=0, description="Held-out tasks, one episode each; 0: no evaluation at all.")
    every: int = Field(default=0, ge=0, description="Batches between evaluations; 0: only before and after.")
    temperature: float = Field(default=1.0, ge=0, description="Sampling temperature; 0 is greedy.")
    samples: int = Field(default=4, ge=0, description="Episodes of each evaluation kept as text in samples.jsonl.")


class WarmStart(BaseModel):
    """Supervised imitation of the environment's demonstrations before batch 0 (its optimizer: learner.warm_start)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    steps: int = Field(default=0, ge=0, description="Optimizer steps; 0: no warm start.")
    demonstrations: int = Field(default=2000, ge=1, description="Solved conversations asked of the environment.")


class FailureConfig(BaseModel):
    """When failing work stops the run instead of burning data (with the reasons, counted)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    limit: int = Field(default=32, ge=1, description="Groups in a row without anything to train on that stop the run.")
    skips: int = Field(default=3, ge=1, description="Batches in a row that moved nothing that stop the run.")
    first_pause: float = Field(default=0.5, ge=0, description="Seconds before the first retry; doubles from then on.")
    longest_pause: float = Field(default=30.0, ge=0, description="Longest pause between retries, in seconds.")


class DeadlineConfig(BaseModel):
    """Longest waits, in seconds; each one that runs out says for what, since when and on whom."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    start: float = Field(default=600.0, gt=0, description="An engine or the learner loads its model.")
    batch: float = Field(default=3600.0, gt=0, description="Enough groups finish to fill a batch.")
    train: float = Field(default=3600.0, gt=0, description="The learner answers one call.")
