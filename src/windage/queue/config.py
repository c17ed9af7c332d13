"""QueueConfig: what happens to groups that are incomplete, keep failing, or are left over. No torch here."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["QueueConfig"]


class QueueConfig(BaseModel):
    """Settings of the queue that the mode does not hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_group: int = Field(default=1, ge=1, description="Survivors that make a group worth training.")
    retries: int = Field(
        default=2,
        ge=0,
        description="Times a group with fewer survivors is handed out again, if a service failed and not the policy.",
    )
    tail: Literal["train", "drop"] = Field(
        default="train", description="End of data: train the last, shorter batch, or drop it (counted as rejected)."
    )
    durability: Literal["process", "power"] = Field(
        default="process",
        description="What finished groups survive: death of the process (fast), or also a power cut (fsync per group).",
    )
    minimum_share: float = Field(
        default=0.5,
        ge=0.0,
        le=1.0,
        description="Warn when a source's share of the trained groups falls below this part of its admitted share.",
    )
