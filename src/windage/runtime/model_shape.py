"""ModelShape: how large a model is, from its config and safetensors headers. Loads no weights, no torch."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from windage.learner.model_config import PathModel, Qwen3RandomModel

__all__ = ["ModelShape", "shape_of"]

_CHARACTERS = 100  # about the size of a character vocabulary; it hardly matters for the total


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Sizes of a decoder. ``parameters`` counts the weights that are stored (a tied head once)."""

    parameters: int
    vocab: int
    hidden: int
    layers: int
    kv_heads: int
    head_dim: int
    intermediate: int

    @property
    def kv_numbers_per_token(self) -> int:
        """Numbers that the KV cache holds for one token: keys and values of every layer."""
        return 2 * self.layers * self.kv_heads * self.head_dim


def shape_of(model: PathModel | Qwen3RandomModel) -> ModelShape | None:
    """The shape of the model; None for one that is not on this machine, or whose config names its sizes differently."""
    if isinstance(model, Qwen3RandomModel):
        return _shape(
            {
                "vocab_size": model.vocab or _CHARACTERS,
                "hidden_size": model.hidden,
                "num_hidden_layers": model.layers,
                "num_attention_heads": model.heads,
                "num_key_value_heads": model.kv_heads,
                "head_dim": model.head_dim or model.hidden // model.heads,
                "intermediate_size": model.intermediate,
                "tie_word_embeddings": model.tie,
            },
            stored=0,
        )
    folder = Path(model.path).expanduser()
    try:
        return _shape(json.loads((folder / "config.json").read_text(encoding="utf-8")), stored=_stored(folder))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _shape(sizes: Mapping[str, Any], *, stored: int) -> ModelShape:
    hidden, heads = int(sizes["hidden_size"]), int(sizes["num_attention_heads"])
    return ModelShape(
        parameters=stored or _parameters(sizes),
        vocab=int(sizes["vocab_size"]),
        hidden=hidden,
        layers=int(sizes["num_hidden_layers"]),
        kv_heads=int(sizes.get("num_key_value_heads") or heads),
        head_dim=int(sizes.get("head_dim") or hidden // heads),
        intermediate=int(sizes["intermediate_size"]),
    )


def _parameters(sizes: Mapping[str, Any]) -> int:
    """Weights of a Llama-like decoder with gated MLPs, dense or mixture-of-experts; biases and norms left out."""
    hidden, heads = int(sizes["hidden_size"]), int(sizes["num_attention_heads"])
    width = int(sizes.get("head_dim") or hidden // heads)
    kv_heads = int(sizes.get("num_key_value_heads") or heads)
    attention = 2 * hidden * heads * width + 2 * hidden * kv_heads * width
    experts = int(sizes.get("num_experts") or sizes.get("num_local_experts") or 0)
    inner = int(sizes.get("moe_intermediate_size") or sizes["intermediate_size"])
    mlp = 3 * hidden * inner * max(1, experts) + hidden * experts
    embeddings = int(sizes["vocab_size"]) * hidden * (1 if sizes.get("tie_word_embeddings") else 2)
    return embeddings + int(sizes["num_hidden_layers"]) * (attention + mlp)


def _stored(folder: Path) -> int:
    """Numbers in the folder's safetensors files, from their headers alone; 0 without such files."""
    total = 0
    for path in sorted(folder.glob("*.safetensors")):
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(length))
        for name, tensor in header.items():
            if name != "__metadata__":
                size = 1
                for extent in tensor["shape"]:
                    size *= int(extent)
                total += size
    return total
