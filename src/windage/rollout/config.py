"""RolloutConfig: how episodes are played. No torch here."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from windage.errors import explain

__all__ = ["RolloutConfig"]


class RolloutConfig(BaseModel):
    """Group size, sampling, budgets and deadlines of an episode. Defaults without a source are ours (Windage)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    group_size: int = Field(default=8, ge=1, description="Episodes per task.")
    temperature: float = Field(default=1.0, gt=0, description="Sampling temperature; the learner replays it.")
    top_p: float = Field(default=1.0, gt=0, le=1, description="1 is off. Truncation cannot be replayed by the learner.")
    top_k: int = Field(default=0, ge=0, description="0 is off. Truncation cannot be replayed by the learner.")
    max_turns: int = Field(default=4, ge=1, description="Model calls of an episode.")
    max_tokens: int = Field(default=256, ge=1, description="Sampled tokens of one turn.")
    max_context: int = Field(
        default=4096, ge=8, description="Tokens of an episode; each turn reserves max_tokens of it beforehand."
    )
    history: Literal["fork", "append"] = Field(
        default="fork",
        description="When the chat template rewrites earlier turns. fork: a new row, as deployment will see it; "
        "append: keep the sampled tokens as they are (counted either way).",
    )
    entropy: bool = Field(default=False, description="Record the entropy of the sampling distribution.")
    routes: bool = Field(default=False, description="Record the experts chosen by the engine (mixture-of-experts).")
    retries: int = Field(default=2, ge=0, description="Times a member is played again after a service failed it.")
    engine_seconds: float = Field(default=900.0, gt=0, description="Deadline of one model call.")
    step_seconds: float = Field(default=120.0, gt=0, description="Deadline of one environment step: tools and reward.")
    episode_seconds: float = Field(default=1800.0, gt=0, description="Deadline of a whole episode.")

    @model_validator(mode="after")
    def _turn_fits(self) -> Self:
        if self.max_tokens >= self.max_context:
            raise ValueError(
                explain(
                    "rollout.max_context leaves no room for a prompt",
                    got=f"max_tokens={self.max_tokens}, max_context={self.max_context}",
                    expected="max_tokens < max_context",
                )
            )
        return self
