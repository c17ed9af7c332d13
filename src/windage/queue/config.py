"""QueueConfig: what happens to groups that are incomplete, keep failing or grow old. No torch here."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["QueueConfig"]


class QueueConfig(BaseModel):
    """Settings of the queue that the mode does not hold."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    min_group: int = Field(default=1, ge=1, description="Survivors that make a group worth training.")
    retries: int = Field(default=2, ge=0, description="Times a group with failed members is handed out again.")
