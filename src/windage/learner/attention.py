"""Attention inside packed rows: the function Hugging Face modules call while a packed sequence is in flight."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from windage.errors import ConfigError, LearnerError, explain
from windage.learner.packed import LengthGroup, Packed

__all__ = ["ATTENTION_NAME", "register", "rows_of"]

ATTENTION_NAME = "windage_rows"

# A plain variable, not a context variable: autograd recomputes checkpointed layers on its own thread.
_flight: list[Packed] = []


@contextmanager
def rows_of(packed: Packed) -> Generator[None]:
    """Attention inside the block, backward included, stays within the rows of ``packed``."""
    _flight.append(packed)
    try:
        yield
    finally:
        _flight.pop()


def register() -> None:
    """Make :data:`ATTENTION_NAME` known to transformers."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION_NAME, _attention)


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **settings: Any,
) -> tuple[Tensor, None]:
    """[1, heads, T, dim] each; returns [1, T, heads, dim]. Dropout is ignored: log-probs must be reproducible.

    Raises:
        ConfigError: the model asks for something this attention does not do.
    """
    unknown = [name for name in ("softcap", "s_aux", "position_bias") if settings.get(name) is not None]
    if unknown:
        raise ConfigError(explain("the learner's packed attention lacks what this model uses", got=unknown))
    if not _flight:
        raise LearnerError(explain("attention outside a packed sequence", do="use windage.learner.forward"))
    del module
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    q, k, v = (tensor[0].transpose(0, 1) for tensor in (query, key, value))
    return _rows(_flight[-1], q, k, v, scale, sliding_window or 0)[None], None


def _rows(packed: Packed, query: Tensor, key: Tensor, value: Tensor, scale: float, window: int) -> Tensor:
    """Attention of [T, heads, dim] row by row, as few calls as the lengths allow."""
    joined: list[Tensor] = []
    for group in packed.groups:
        mixed = _causal(_cells(group, query), _cells(group, key), _cells(group, value), scale, window)
        flat = mixed.transpose(1, 2).reshape(group.rows * group.width, *query.shape[1:2], value.shape[-1])
        joined.append(flat if group.full else flat.index_select(0, group.valid))
    return torch.cat(joined).index_select(0, packed.restore)


def _cells(group: LengthGroup, packed: Tensor) -> Tensor:
    """[T, heads, dim] to [rows, heads, width, dim]."""
    return packed.index_select(0, group.take).view(group.rows, group.width, *packed.shape[1:]).transpose(1, 2)


def _causal(query: Tensor, key: Tensor, value: Tensor, scale: float, window: int) -> Tensor:
    width = query.shape[2]
    repeat = query.shape[1] // key.shape[1]
    if repeat > 1:
        key, value = key.repeat_interleave(repeat, dim=1), value.repeat_interleave(repeat, dim=1)
    if not 0 < window < width:
        # Rows are padded on the right: the causal rule alone hides the padding from every real query.
        return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale)
    place = torch.arange(width, device=query.device)
    distance = place[:, None] - place[None]
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask=(distance >= 0) & (distance < window), scale=scale
    )
