"""Plan: the tokens of one packed forward pass, and where each of them stands.

All new tokens of all sequences lie in one row, without padding: first the sequences that take one token (decode),
then longer pieces of prompts. Linear layers never see sequence borders; only attention does, through the plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from windage.engines.embedded.kv import KVStore

__all__ = ["Group", "Piece", "Plan", "pieces_alone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Consecutive new tokens of one sequence: ``tokens`` at positions ``start …`` of slot ``slot``."""

    slot: int
    start: int
    tokens: Sequence[int]

    @property
    def stop(self) -> int:
        """One past the last position."""
        return self.start + len(self.tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Pieces of like length that share one padded attention call.

    ``take`` [members * width] index of the packed token at each padded place; ``valid``/``put`` which padded places
    hold a real token, and its packed index; ``reach`` longest context; ``fresh`` = all start at position 0;
    ``queries`` [members, width] positions of the padded places.
    """

    members: int
    width: int
    reach: int
    fresh: bool
    take: Tensor
    valid: Tensor
    put: Tensor
    slots: Tensor
    queries: Tensor


@dataclass(kw_only=True)
class Plan:
    """One forward pass. ``singles`` pieces of one token come first, ``groups`` cover the others.

    ``store=None`` computes without a cache: every piece starts at 0 and is forgotten afterwards (scoring).
    """

    pieces: list[Piece]
    store: KVStore | None
    device: torch.device
    singles: int = field(init=False)
    token_ids: Tensor = field(init=False)
    positions: Tensor = field(init=False)
    groups: list[Group] = field(init=False)
    last: list[int] = field(init=False)
    slots: Tensor = field(init=False)
    lengths: Tensor = field(init=False)
    longest: int = field(init=False)
    order: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.order = sorted(range(len(self.pieces)), key=lambda index: len(self.pieces[index].tokens) > 1)
        ordered = [self.pieces[index] for index in self.order]
        self.singles = sum(len(piece.tokens) == 1 for piece in ordered) if self.store is not None else 0
        ids: list[int] = []
        positions: list[int] = []
        begins: list[int] = []
        for piece in ordered:
            begins.append(len(ids))
            ids.extend(piece.tokens)
            positions.extend(range(piece.start, piece.stop))
        self.token_ids = torch.tensor(ids, device=self.device)
        self.positions = torch.tensor(positions, device=self.device)
        self.last = [0] * len(ordered)
        for place, index in enumerate(self.order):
            self.last[index] = begins[place] + len(ordered[place].tokens) - 1
        self._index_singles(ordered[: self.singles])
        long = [(ordered[place], begins[place]) for place in range(self.singles, len(ordered))]
        self.groups = [_group(members, self.device) for members in _alike(long)]
        self._write_index: Tensor | None = None

    def _index_singles(self, singles: list[Piece]) -> None:
        self.slots = torch.tensor([piece.slot for piece in singles], dtype=torch.long, device=self.device)
        self.lengths = torch.tensor([piece.stop for piece in singles], dtype=torch.long, device=self.device)
        self.longest = max((piece.stop for piece in singles), default=0)

    @property
    def write_index(self) -> Tensor:
        """Flat rows of the store for every (token, head): (slot · heads + head) · capacity + position."""
        if self._write_index is None:
            assert self.store is not None
            heads, capacity = self.store.shape.heads, self.store.capacity
            slots = torch.tensor(
                [piece.slot for index in self.order for piece in [self.pieces[index]] for _ in piece.tokens],
                device=self.device,
            )
            rows = (slots * heads)[:, None] + torch.arange(heads, device=self.device)
            self._write_index = (rows * capacity + self.positions[:, None]).reshape(-1)
        return self._write_index


def pieces_alone(rows: Sequence[Sequence[int]]) -> list[Piece]:
    """Whole sequences as pieces that need no cache."""
    return [Piece(slot=0, start=0, tokens=row) for row in rows]


def _alike(pieces: list[tuple[Piece, int]]) -> list[list[tuple[Piece, int]]]:
    """Cut into groups whose padding stays within a quarter of the real work; deterministic."""
    pieces = sorted(pieces, key=lambda item: (item[0].start > 0, len(item[0].tokens), item[0].stop))
    groups: list[list[tuple[Piece, int]]] = []
    real = 0
    for item in pieces:
        width = len(item[0].tokens)
        if groups:
            members = groups[-1]
            same = (members[0][0].start > 0) == (item[0].start > 0)
            padded = width * (len(members) + 1)
            if same and padded <= 1.25 * (real + width) + 16:
                members.append(item)
                real += width
                continue
        groups.append([item])
        real = width
    return groups


def _group(members: list[tuple[Piece, int]], device: torch.device) -> Group:
    width = max(len(piece.tokens) for piece, _ in members)
    take: list[int] = []
    valid: list[int] = []
    put: list[int] = []
    queries: list[list[int]] = []
    for row, (piece, begin) in enumerate(members):
        count = len(piece.tokens)
        take.extend(begin + min(column, count - 1) for column in range(width))
        valid.extend(row * width + column for column in range(count))
        put.extend(range(begin, begin + count))
        queries.append([piece.start + min(column, count - 1) for column in range(width)])
    return Group(
        members=len(members),
        width=width,
        reach=max(piece.stop for piece, _ in members),
        fresh=all(piece.start == 0 for piece, _ in members),
        take=torch.tensor(take, device=device),
        valid=torch.tensor(valid, device=device),
        put=torch.tensor(put, device=device),
        slots=torch.tensor([piece.slot for piece, _ in members], device=device),
        queries=torch.tensor(queries, device=device),
    )
