"""Packed: rows laid end to end as one sequence without padding, and how attention finds the rows again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

__all__ = ["LengthGroup", "Packed", "pack"]

_SHORT = 24
_SIMILAR = 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthGroup:
    """Rows of similar length that share one attention call, padded on the right to ``width``.

    ``take``   i64 [rows * width]  packed position of every cell; padding repeats the row's last token
    ``valid``  i64 [tokens]        cells that are real
    """

    rows: int
    width: int
    take: Tensor
    valid: Tensor
    full: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """``T`` tokens of ``R`` rows.

    ``token_ids``, ``positions``  i64 [T]; positions start again at 0 in every row
    ``offsets``                   i64 [R+1] first token of each row
    ``boundaries``                i32 [R+1] the same, for variable-length kernels
    ``groups``                    attention calls; ``restore`` i64 [T] puts their joined output back in packed order
    """

    token_ids: Tensor
    positions: Tensor
    offsets: Tensor
    boundaries: Tensor
    longest: int
    groups: tuple[LengthGroup, ...]
    restore: Tensor

    @property
    def tokens(self) -> int:
        """Tokens in the sequence."""
        return len(self.token_ids)


def pack(rows: Sequence[NDArray[np.integer]], *, device: torch.device | str = "cpu") -> Packed:
    """Lay ``rows`` (token ids, each at least one) end to end.

    >>> pack([np.array([5, 6, 7]), np.array([8])]).positions.tolist()
    [0, 1, 2, 0]
    """
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    if not len(lengths) or lengths.min() < 1:
        raise ValueError("rows to pack must exist and have at least one token each")
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    positions = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
    groups, order = _group(lengths, offsets, device)

    def put(array: NDArray[np.integer], dtype: torch.dtype = torch.int64) -> Tensor:
        return torch.tensor(array, dtype=dtype, device=device)

    return Packed(
        token_ids=put(np.concatenate([np.asarray(row, dtype=np.int64) for row in rows])),
        positions=put(positions),
        offsets=put(offsets),
        boundaries=put(offsets, torch.int32),
        longest=int(lengths.max()),
        groups=groups,
        restore=put(np.argsort(order)),
    )


def _group(
    lengths: NDArray[np.int64], offsets: NDArray[np.int64], device: torch.device | str
) -> tuple[tuple[LengthGroup, ...], NDArray[np.int64]]:
    """Groups of rows within 25 % of the longest in the group, and the packed position of each token of their output."""
    descending = np.argsort(-lengths, kind="stable")
    groups: list[LengthGroup] = []
    order: list[NDArray[np.int64]] = []
    start = 0
    while start < len(descending):
        width = int(lengths[descending[start]])
        least = 1 if width <= _SHORT else _SIMILAR * width
        stop = start + int(np.searchsorted(-lengths[descending[start:]], -least, side="right"))
        members = descending[start:stop]
        inside = np.minimum(np.arange(width)[None], lengths[members, None] - 1)
        take = (offsets[members, None] + inside).reshape(-1)
        valid = np.flatnonzero((np.arange(width)[None] < lengths[members, None]).reshape(-1))
        order.append(take[valid])
        groups.append(
            LengthGroup(
                rows=len(members),
                width=width,
                take=torch.tensor(take, device=device),
                valid=torch.tensor(valid, device=device),
                full=len(valid) == len(take),
            )
        )
        start = stop
    return tuple(groups), np.concatenate(order)
