"""KVStore: keys and values of all layers in slots of equal capacity; grows with the longest sequence at hand."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["KVShape", "KVStore"]


@dataclass(frozen=True, slots=True, kw_only=True)
class KVShape:
    """Size of one token's keys and values: ``layers`` times ``heads`` times (``key_dim`` + ``value_dim``) numbers."""

    layers: int
    heads: int
    key_dim: int
    value_dim: int
    dtype: torch.dtype
    device: torch.device

    @property
    def bytes_per_token(self) -> int:
        """Bytes one cached token takes."""
        return self.layers * self.heads * (self.key_dim + self.value_dim) * self.dtype.itemsize


class KVStore:
    """``keys[layer]`` [slots, heads, capacity, key_dim] and ``values[layer]`` alike; every slot starts at position 0.

    Only bytes move here; which slot holds what is :class:`~windage.engines.embedded.slots.SlotTable`'s business.
    """

    def __init__(self, shape: KVShape) -> None:
        self.shape = shape
        self.slots = 0
        self.capacity = 0
        self.keys: list[Tensor] = []
        self.values: list[Tensor] = []

    def resize(self, slots: int, capacity: int, *, keep: dict[int, int] | None = None) -> None:
        """Reallocate; ``keep`` maps old slots to the new slots that take over their contents.

        One layer at a time, so that the peak above the two sizes' maximum is a single layer.
        """
        shape, keep = self.shape, keep or {}
        old = torch.tensor(list(keep), dtype=torch.long, device=shape.device)
        new = torch.tensor(list(keep.values()), dtype=torch.long, device=shape.device)
        width = min(self.capacity, capacity)
        for stores, dim in ((self.keys, shape.key_dim), (self.values, shape.value_dim)):
            for layer in range(shape.layers):
                fresh = torch.zeros(slots, shape.heads, capacity, dim, dtype=shape.dtype, device=shape.device)
                if keep:
                    fresh[new, :, :width] = stores[layer][old, :, :width]
                if layer < len(stores):
                    stores[layer] = fresh
                else:
                    stores.append(fresh)
        self.slots, self.capacity = slots, capacity

    def copy(self, source: int, target: int, tokens: int) -> None:
        """Copy the first ``tokens`` positions of one slot to another, in every layer."""
        for store in (*self.keys, *self.values):
            store[target, :, :tokens] = store[source, :, :tokens]

    def write(self, layer: int, keys: Tensor, values: Tensor, index: Tensor) -> None:
        """Store [tokens, heads, dim] at flat rows ``index`` [tokens * heads] of the layer's [slots*heads*capacity]."""
        shape = self.shape
        self.keys[layer].view(-1, shape.key_dim).index_copy_(0, index, keys.reshape(-1, shape.key_dim))
        self.values[layer].view(-1, shape.value_dim).index_copy_(0, index, values.reshape(-1, shape.value_dim))
