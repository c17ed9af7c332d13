"""ModelConfig: which policy to train. A union on ``name``; no torch here."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from windage.errors import explain

__all__ = ["ModelConfig", "PathModel", "Qwen3RandomModel"]


class PathModel(BaseModel):
    """A pretrained causal LM: a local folder in Hugging Face layout, or the id of one on the hub."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["path"] = "path"
    path: str = Field(min_length=1, description="Folder (config.json, safetensors, tokenizer) or hub id.")
    revision: str | None = Field(default=None, description="Branch, tag or commit of a hub id.")
    trust_remote_code: bool = Field(default=False, description="Run model code found beside the weights.")


class Qwen3RandomModel(BaseModel):
    """A randomly initialised Qwen3-architecture model: for quick starts and tests. Vocabulary: the tokenizer's size."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["qwen3_random"] = "qwen3_random"
    hidden: int = Field(default=128, ge=8, description="Width of the residual stream.")
    layers: int = Field(default=4, ge=1)
    heads: int = Field(default=4, ge=1, description="Query heads.")
    kv_heads: int = Field(default=2, ge=1, description="Key/value heads; divides heads.")
    head_dim: int | None = Field(default=None, ge=2, description="None: hidden / heads.")
    intermediate: int = Field(default=512, ge=8, description="Width of the gated MLP.")
    vocab: int = Field(default=0, ge=0, description="0: the tokenizer's size.")
    tie: bool = Field(default=True, description="Share the embedding with the head.")
    max_positions: int = Field(default=4096, ge=8, description="Longest row; costs no memory by itself.")
    rope_theta: float = Field(default=10000.0, gt=0)
    init_scale: float = Field(default=0.02, gt=0, description="Standard deviation of the initial weights.")
    seed: int = 0

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.heads % self.kv_heads:
            raise ValueError(
                explain("kv_heads must divide heads", got=(self.heads, self.kv_heads), expected="heads % kv_heads == 0")
            )
        if self.head_dim is None and self.hidden % self.heads:
            raise ValueError(
                explain(
                    "heads must divide hidden", got=(self.hidden, self.heads), do="set model.head_dim, or change one"
                )
            )
        return self


ModelConfig = Annotated[PathModel | Qwen3RandomModel, Field(discriminator="name")]
"""``name: path`` or ``name: qwen3_random``."""
