"""MemoryEstimate: about how much memory a recipe takes, before anything starts (trap 50)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from windage.runtime.model_shape import ModelShape, shape_of

if TYPE_CHECKING:
    from windage.runtime.config import RunConfig

__all__ = ["MemoryEstimate", "estimate_memory"]

_HEAD_CHUNK = 64 * 2**20  # the learner's own choice for a chunk of logits (learner.head_chunk=0)
_VERSIONS = 2  # published weight folders at once: the current one, and the next one while it is written


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """Bytes by what takes them. Lower bounds: libraries, fragmentation and the runtime come on top."""

    parameters: int
    learner_state: int
    learner_activations: int
    learner_head: int
    engine_weights: int
    engine_cache_per_token: int
    published: int
    engines: int

    def lines(self) -> Iterator[str]:
        """The estimate in words, one line a process."""
        learner = self.learner_state + self.learner_activations + self.learner_head
        yield (
            f"memory, learner: about {_size(learner)} = {_size(self.learner_state)} weights, gradients and optimizer "
            f"({self.parameters / 1e6:,.1f} M parameters) + {_size(self.learner_activations)} activations of one "
            f"micro-batch + {_size(self.learner_head)} logits of one chunk"
        )
        yield (
            f"memory, each of {self.engines} engine(s): about {_size(self.engine_weights)} weights (two copies during "
            f"a swap) + {_size(self.engine_cache_per_token)} of cache for each token in it"
        )
        yield f"memory, published versions: {_size(self.published)}"


def estimate_memory(config: RunConfig) -> MemoryEstimate | None:
    """The estimate; None when the model's size is not known on this machine."""
    shape = shape_of(config.model)
    if shape is None:
        return None
    gpu = _has_gpu()
    engine_bytes = _width(config.engine.dtype, gpu=gpu)
    return MemoryEstimate(
        parameters=shape.parameters,
        learner_state=4 * shape.parameters + 12 * _trainable(config, shape),
        learner_activations=_activations(config, shape, width=_width(config.learner.dtype, gpu=gpu)),
        learner_head=4 * config.learner.head_chunk * shape.vocab if config.learner.head_chunk else _HEAD_CHUNK,
        engine_weights=2 * engine_bytes * shape.parameters,
        engine_cache_per_token=engine_bytes * shape.kv_numbers_per_token,
        published=4 * shape.parameters * _VERSIONS,
        engines=config.engine.count,
    )


def _trainable(config: RunConfig, shape: ModelShape) -> int:
    """Weights with a gradient (4 bytes) and two AdamW moments (8 bytes)."""
    learner = config.learner
    if learner.lora is not None:
        per_layer = 2 * shape.hidden + 2 * (shape.hidden + shape.kv_heads * shape.head_dim)
        per_layer += 2 * shape.hidden + 3 * (shape.hidden + shape.intermediate)
        return learner.lora.rank * shape.layers * per_layer
    body = shape.parameters - shape.vocab * shape.hidden
    frozen = min(learner.freeze_layers, shape.layers) / shape.layers
    return int(body * (1 - frozen)) + (0 if learner.freeze_layers else shape.vocab * shape.hidden)


def _activations(config: RunConfig, shape: ModelShape, *, width: int) -> int:
    """What backward needs of one micro-batch: about six hidden, two key/value and three MLP vectors a layer."""
    per_layer = 6 * shape.hidden + 2 * shape.kv_heads * shape.head_dim + 3 * shape.intermediate
    per_token = shape.layers * shape.hidden + per_layer if config.learner.gradient_checkpointing else 0
    return width * config.assembly.token_budget * (per_token or shape.layers * per_layer)


def _width(dtype: str, *, gpu: bool) -> int:
    """Bytes of one number; ``auto`` is bfloat16 on a GPU and float32 on a CPU."""
    if dtype == "auto":
        return 2 if gpu else 4
    return 4 if dtype in {"float32", "fp32"} else 2


def _has_gpu() -> bool:
    return Path("/dev/nvidia0").exists() or Path("/proc/driver/nvidia/version").exists()


def _size(count: float) -> str:
    """Bytes for people.

    >>> _size(5.4e8), _size(3000)
    ('0.5 GB', '3 kB')
    """
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale or (unit == "GB" and count >= 1e8):
            return f"{count / scale:.1f} GB" if unit == "GB" else f"{count / scale:.0f} {unit}"
    return f"{count:.0f} bytes"
