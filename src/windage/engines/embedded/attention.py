"""Attention over a packed plan: new keys and values go to the store, then every query attends to its own prefix."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812 (the field's name for it)
from torch import Tensor

from windage.engines.embedded.plan import Group, Plan
from windage.errors import EngineError, explain

__all__ = ["ATTENTION_NAME", "attend", "hugging_face_attention", "planned"]

ATTENTION_NAME = "windage_packed"
RaggedKernel = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor, float, int], Tensor]

_PLAN: ContextVar[tuple[Plan, RaggedKernel | None]] = ContextVar("windage_plan")


@contextmanager
def planned(plan: Plan, kernel: RaggedKernel | None) -> Generator[None]:
    """Make ``plan`` the one that attention inside the block follows; ``kernel`` decodes single tokens."""
    token = _PLAN.set((plan, kernel))
    try:
        yield
    finally:
        _PLAN.reset(token)


def hugging_face_attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    sliding_window: int | None = None,
    **settings: Any,
) -> tuple[Tensor, None]:
    """The function Hugging Face modules call (their AttentionInterface): [1, heads, tokens, dim] each.

    Raises:
        EngineError: the model asks for something this attention does not do (soft caps, sinks, position biases).
    """
    unknown = [name for name in ("softcap", "s_aux", "position_bias") if settings.get(name) is not None]
    if unknown:
        raise EngineError(explain("the embedded engine's attention lacks what this model uses", got=unknown))
    plan, kernel = _PLAN.get()
    out = attend(
        plan=plan,
        layer=module.layer_idx,
        query=query[0].transpose(0, 1),
        key=key[0].transpose(0, 1),
        value=value[0].transpose(0, 1),
        scale=query.shape[-1] ** -0.5 if scaling is None else scaling,
        window=sliding_window or 0,
        kernel=kernel,
    )
    return out[None], None


def attend(
    *,
    plan: Plan,
    layer: int,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    window: int = 0,
    kernel: RaggedKernel | None = None,
) -> Tensor:
    """Causal attention of every packed token over its own sequence.

    Arguments:
        query, key, value: [tokens, heads, dim], key and value with the key/value heads
        scale: factor on the scores
        window: a query sees this many tokens, itself included; 0 = all
        kernel: decode loop for single tokens (float32, CPU); None = torch's kernel over padded rows

    Returns: [tokens, heads, value_dim]
    """
    if plan.store is not None:
        plan.store.write(layer, key, value, plan.write_index)
    if plan.singles == len(plan.pieces):
        return _singles(plan, layer, query, scale, window, kernel)
    out = query.new_empty(*query.shape[:2], value.shape[-1])
    if plan.singles:
        out[: plan.singles] = _singles(plan, layer, query[: plan.singles], scale, window, kernel)
    for group in plan.groups:
        if group.fresh:
            keys, values = _padded(key, group), _padded(value, group)
        else:
            keys, values = _cached(plan, layer, group)
        mixed = _group_attention(group, _padded(query, group), keys, values, scale, window)
        out[group.put] = mixed.transpose(1, 2).flatten(0, 1)[group.valid]
    return out


def _padded(packed: Tensor, group: Group) -> Tensor:
    rows = packed.index_select(0, group.take)
    return rows.view(group.members, group.width, *packed.shape[1:]).transpose(1, 2)


def _cached(plan: Plan, layer: int, group: Group) -> tuple[Tensor, Tensor]:
    assert plan.store is not None
    keys, values = plan.store.keys[layer], plan.store.values[layer]
    if group.members == 1:
        slot = int(group.slots[0])
        return keys[slot : slot + 1, :, : group.reach], values[slot : slot + 1, :, : group.reach]
    return (
        keys[:, :, : group.reach].index_select(0, group.slots),
        values[:, :, : group.reach].index_select(0, group.slots),
    )


def _group_attention(group: Group, query: Tensor, keys: Tensor, values: Tensor, scale: float, window: int) -> Tensor:
    repeat = query.shape[1] // keys.shape[1]
    keys, values = keys.repeat_interleave(repeat, dim=1), values.repeat_interleave(repeat, dim=1)
    if group.fresh and not 0 < window < group.width:
        # Rows are padded on the right, so the causal rule alone hides the padding from every real query.
        return F.scaled_dot_product_attention(query, keys, values, is_causal=group.width > 1, scale=scale)
    places = torch.arange(keys.shape[2], device=query.device)
    seen = places <= group.queries[:, None, :, None]
    if window:
        seen &= places > group.queries[:, None, :, None] - window
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=seen, scale=scale)


def _singles(plan: Plan, layer: int, query: Tensor, scale: float, window: int, kernel: RaggedKernel | None) -> Tensor:
    assert plan.store is not None
    keys, values = plan.store.keys[layer], plan.store.values[layer]
    if kernel is not None:
        return kernel(query, keys, values, plan.slots, plan.lengths, scale, window)
    reach = -(-plan.longest // 64) * 64  # few distinct shapes; what lies beyond a row's length is masked
    keys, values = keys[:, :, :reach].index_select(0, plan.slots), values[:, :, :reach].index_select(0, plan.slots)
    places = torch.arange(keys.shape[2], device=query.device)
    seen = places < plan.lengths[:, None]
    if window:
        seen &= places >= plan.lengths[:, None] - window
    rows, heads = query.shape[:2]
    packed = query.view(rows, keys.shape[1], heads // keys.shape[1], query.shape[-1])
    mixed = F.scaled_dot_product_attention(packed, keys, values, attn_mask=seen[:, None, None], scale=scale)
    return mixed.reshape(rows, heads, values.shape[-1])
