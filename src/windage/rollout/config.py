"""RolloutConfig: how episodes are played. No torch here."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["RolloutConfig"]


class RolloutConfig(BaseModel):
    """Group size, sampling and budgets of an episode."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    group_size: int = Field(default=8, ge=1, description="Episodes per task.")
    temperature: float = Field(default=1.0, gt=0)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=0)
    max_turns: int = Field(default=4, ge=1, description="Model calls of an episode.")
    max_tokens: int = Field(default=256, ge=1, description="Sampled tokens of one turn.")
