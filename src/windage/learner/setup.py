"""LearnerSetup: everything the learner process is told when it starts. No torch here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from windage.learner.config import LearnerConfig
from windage.learner.model_config import ModelConfig

__all__ = ["LearnerSetup"]


class LearnerSetup(BaseModel):
    """The user's ``learner``, ``model`` and ``algorithm`` sections with what the run adds to them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    learner: LearnerConfig = Field(default_factory=LearnerConfig)
    model: ModelConfig
    algorithm: Mapping[str, Any] = Field(description="name, and that algorithm's settings.")
    seed: int = 0
    tokenizer: str | None = Field(
        default=None, description="Folder of the tokenizer; None takes the model's. Its files travel with the weights."
    )
    publish_folder: str = Field(description="Where versions are written: shared memory or disk.")
    publish_keep: int = Field(default=2, ge=1, description="Versions kept: lag + 1, and at least the current one.")
    temperature: float = Field(default=1.0, gt=0, description="Sampling temperature of the rollouts (trap 23).")
    probe_tokens: int = Field(default=32, ge=2, description="Length of the probe prompt of a publish.")
