"""LearnerConfig: how the policy is trained. No torch here."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from windage.errors import explain
from windage.learner.critic_config import CriticConfig

__all__ = ["LearnerConfig", "LoraConfig", "WarmStartConfig"]


class LoraConfig(BaseModel):
    """Low-rank adapters (peft) instead of full weights; merged into what is published."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    rank: int = Field(default=16, ge=1)
    alpha: int = Field(default=32, ge=1)
    targets: tuple[str, ...] | Literal["all-linear"] = Field(
        default="all-linear", description="Module names to adapt, or every linear layer but the head."
    )
    dropout: float = Field(default=0.0, ge=0, lt=1)


class WarmStartConfig(BaseModel):
    """Supervised imitation before step 0: an optimizer of its own, dropped afterwards."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lr: float = Field(default=1e-3, gt=0)
    batch: int = Field(default=64, ge=1, description="Demonstrations per step.")
    warmup: int = Field(default=10, ge=0, description="Steps of linear learning-rate warm-up.")
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    weight_decay: float = Field(default=0.0, ge=0)
    max_grad_norm: float = Field(default=1.0, gt=0)
    micro_tokens: int = Field(default=16384, ge=1, description="Tokens of one packed forward pass.")


class LearnerConfig(BaseModel):
    """Optimizer, critic, memory and numbers of the learner process."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lr: float = Field(default=1e-6, gt=0, description="Peak learning rate of the policy.")
    betas: tuple[float, float] = Field(default=(0.9, 0.999))
    eps: float = Field(default=1e-8, gt=0)
    weight_decay: float = Field(default=0.0, ge=0, description="On matrices only.")
    max_grad_norm: float = Field(default=1.0, gt=0, description="Gradients are scaled down to this norm.")
    warmup: int = Field(default=0, ge=0, description="Updates of linear learning-rate warm-up.")
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    total_updates: int | None = Field(default=None, ge=1, description="Update at which linear and cosine reach 0.")
    updates_per_batch: int = Field(default=1, ge=1, description="Optimizer updates per batch, so per publish.")
    update_rows: Literal["all", "slice"] = Field(
        default="all", description="Each update sees all rows, or its own 1/updates_per_batch of them."
    )
    critic: CriticConfig = Field(default_factory=CriticConfig)
    warm_start: WarmStartConfig = Field(default_factory=WarmStartConfig)
    lora: LoraConfig | None = None
    freeze_layers: int = Field(default=0, ge=0, description="Lowest layers (and the embedding) that do not train.")
    gradient_checkpointing: bool = Field(default=False, description="Recompute activations: less memory, more time.")
    head_chunk: int = Field(
        default=0, ge=0, description="Tokens per chunk of the head; 0 = as many as keep a chunk's logits near 64 MB."
    )
    entropy: bool = Field(default=False, description="Measure the policy's entropy (forces an entry pass).")
    device: str = Field(default="auto", description="auto: CUDA when there is one, else CPU; or a torch device.")
    dtype: Literal["auto", "fp32", "bf16"] = Field(
        default="auto", description="Numbers of the matrix products; master weights are fp32. auto: bf16 on CUDA."
    )
    threads: int = Field(
        default=0, ge=0, description="CPU threads; 0 = half of the cores (at least 1): the engine has the other half."
    )
    deterministic: bool = Field(default=True, description="Same seed, batches and machine: same bits.")

    @model_validator(mode="after")
    def _cross_checks(self) -> Self:
        if self.schedule != "constant" and self.total_updates is None:
            raise ValueError(
                explain(
                    f"learner.schedule={self.schedule} needs an end",
                    do="set learner.total_updates (steps * updates_per_batch), or schedule=constant",
                )
            )
        if self.schedule == "constant" and self.total_updates is not None:
            raise ValueError(
                explain("learner.total_updates is unused", got=self.total_updates, do="set schedule=linear or cosine")
            )
        if self.update_rows == "slice" and self.updates_per_batch == 1:
            raise ValueError(
                explain("learner.update_rows=slice with one update is update_rows=all", do="raise updates_per_batch")
            )
        if self.lora is not None and self.freeze_layers:
            raise ValueError(
                explain("learner.lora freezes every base layer already", got=f"freeze_layers={self.freeze_layers}")
            )
        return self
