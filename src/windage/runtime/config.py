"""RunConfig: every setting of a run in one frozen tree. No torch here.

The sections live beside what they configure; rules that span sections are in :mod:`windage.runtime.config_rules`.
"""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from windage.assembly.config import AssemblyConfig
from windage.environments.tool_math.config import ToolMathConfig
from windage.learner.config import LearnerConfig
from windage.learner.model_config import ModelConfig
from windage.queue.config import QueueConfig
from windage.queue.pacing import Pacing
from windage.rollout.config import RolloutConfig
from windage.runtime.config_rules import check_rules
from windage.runtime.config_sections import (
    AlgorithmConfig,
    CheckpointConfig,
    DeadlineConfig,
    EngineSettings,
    EvaluationConfig,
    FailureConfig,
    WarmStart,
)
from windage.runtime.mode_config import AsyncMode, LaggedMode, ModeConfig
from windage.runtime.tracking_config import TrackingConfig

__all__ = ["RunConfig"]


class RunConfig(BaseModel):
    """A recipe with every default filled in. Raises at validation, before anything starts, when parts do not fit."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="constants")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", description="Name of the run; default: the file's name.")
    description: str = Field(default="", description="One line for `windage recipes`.")
    seed: int = Field(default=0, ge=0, description="Seeds tasks, sampling, initial weights and the order of rows.")
    steps: int = Field(ge=1, description="Batches to train.")
    groups_per_step: int = Field(default=16, ge=1, description="P: groups (tasks) in a batch.")
    mode: ModeConfig = Field(default_factory=AsyncMode)
    model: ModelConfig
    algorithm: AlgorithmConfig = Field(default_factory=AlgorithmConfig)
    environment: ToolMathConfig = Field(default_factory=ToolMathConfig)
    rollout: RolloutConfig = Field(default_factory=RolloutConfig)
    queue: QueueConfig = Field(default_factory=QueueConfig)
    assembly: AssemblyConfig = Field(default_factory=AssemblyConfig)
    learner: LearnerConfig = Field(default_factory=LearnerConfig)
    engine: EngineSettings = Field(default_factory=EngineSettings)
    warm_start: WarmStart = Field(default_factory=WarmStart)
    evaluation: EvaluationConfig = Field(default_factory=EvaluationConfig)
    checkpoint: CheckpointConfig = Field(default_factory=CheckpointConfig)
    tracking: TrackingConfig = Field(default_factory=TrackingConfig)
    failures: FailureConfig = Field(default_factory=FailureConfig)
    deadlines: DeadlineConfig = Field(default_factory=DeadlineConfig)

    @property
    def pacing(self) -> Pacing:
        """The mode as numbers for admission; ``pacing.bound`` is the hard staleness bound."""
        size = self.groups_per_step
        if isinstance(self.mode, AsyncMode):
            return Pacing.asynchronous(staleness=self.mode.staleness, window=self.mode.window, groups_per_step=size)
        return Pacing.lagged(self.mode.k if isinstance(self.mode, LaggedMode) else 0, groups_per_step=size)

    @property
    def deterministic(self) -> bool:
        """Same seed and machine: same bits."""
        return self.mode.is_deterministic

    @field_validator("mode", mode="before")
    @classmethod
    def _async_unless_named(cls, mode: Any) -> Any:
        return {"name": "async", **mode} if isinstance(mode, dict) else mode

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        check_rules(self)
        return self
