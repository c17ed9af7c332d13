"""CriticConfig: where values come from, and how the critic learns. No torch here."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from windage.errors import explain

__all__ = ["CriticConfig"]


class CriticConfig(BaseModel):
    """Critic of the algorithms that need one; the others never build it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["value_head", "separate"] = Field(
        default="value_head",
        description="value_head: a head on the policy's last hidden state; separate: a second model of its own.",
    )
    path: str | None = Field(default=None, description="separate only: model to start from; None copies the policy.")
    hidden: int = Field(
        default=-1,
        ge=-1,
        description="Width of the head's hidden layer; 0 = linear head; -1 = the trunk's width (separate: linear).",
    )
    trunk_gradient: bool = Field(
        default=False,
        description="value_head only: let the value loss move the policy's trunk. Off, the critic cannot disturb "
        "the policy, and its updates need no forward pass of their own (Windage).",
    )
    coefficient: float = Field(default=0.5, gt=0, description="trunk_gradient only: weight of the value loss.")
    lr: float = Field(default=5e-6, gt=0, description="Learning rate of the critic (SAO: 5e-6).")
    weight_decay: float = Field(default=0.0, ge=0)
    max_grad_norm: float = Field(default=1.0, gt=0)
    updates: int = Field(default=2, ge=1, description="Critic updates per batch (SAO: 2).")
    warmup: int = Field(default=10, ge=0, description="First batches that train the critic only (SAO: 10).")

    @model_validator(mode="after")
    def _fits_kind(self) -> Self:
        if self.kind == "separate" and self.trunk_gradient:
            raise ValueError(
                explain("critic.trunk_gradient belongs to kind=value_head", got="kind=separate", do="drop one of them")
            )
        if self.kind == "value_head" and self.path is not None:
            raise ValueError(explain("critic.path belongs to kind=separate", got=self.path, do="set kind=separate"))
        return self
