"""Segments: the only code that knows row offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from windage.errors import RecordError, explain
from windage.segments.scan import forward_scan, reverse_scan

__all__ = ["Segments"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Segments:
    """Rows of unequal length laid end to end in 1-D arrays of ``tokens`` elements. Rows of length 0 are legal.

    ``lengths``  i64 [rows]      tokens of each row
    ``offsets``  i64 [rows + 1]  first token of each row; the last element is ``tokens``
    ``row_of``   i64 [tokens]    row of each token
    ``filled``   i64 [<= rows]   rows that have tokens

    >>> segments = Segments.from_lengths([2, 0, 3])
    >>> segments.sum(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])).tolist()
    [3.0, 0.0, 12.0]
    """

    lengths: Tensor
    offsets: Tensor
    row_of: Tensor
    filled: Tensor
    rows: int
    tokens: int
    longest: int

    @classmethod
    def from_lengths(cls, lengths: Sequence[int] | Tensor, device: torch.device | str | None = None) -> Self:
        """Build from the length of each row; ``device`` defaults to that of ``lengths``, or the CPU.

        Raises:
            RecordError: a length is negative.
        """
        plain = lengths.tolist() if isinstance(lengths, Tensor) else [int(length) for length in lengths]
        if device is None and isinstance(lengths, Tensor):
            device = lengths.device
        if min(plain, default=0) < 0:
            raise RecordError(explain("negative row length", got=min(plain), expected=">= 0"))
        rows, tokens = len(plain), sum(plain)
        on_cpu = torch.tensor(plain, dtype=torch.int64)
        offsets = torch.zeros(rows + 1, dtype=torch.int64)
        torch.cumsum(on_cpu, 0, out=offsets[1:])
        row_of = torch.repeat_interleave(torch.arange(rows), on_cpu, output_size=tokens)
        return cls(
            lengths=on_cpu.to(device),
            offsets=offsets.to(device),
            row_of=row_of.to(device),
            filled=on_cpu.nonzero().squeeze(1).to(device),
            rows=rows,
            tokens=tokens,
            longest=max(plain, default=0),
        )

    @property
    def position(self) -> Tensor:
        """i64 [tokens]: place of each token inside its row."""
        return torch.arange(self.tokens, device=self.row_of.device) - self.offsets[self.row_of]

    def sum(self, values: Tensor) -> Tensor:
        """Row sums [rows], accumulated in float64 (integers in int64); 0 for an empty row."""
        wide = torch.float64 if values.is_floating_point() else torch.int64
        totals = torch.zeros(self.rows, dtype=wide, device=values.device)
        totals = totals.index_add(0, self.row_of, values.to(wide))
        return totals.to(values.dtype) if values.is_floating_point() else totals

    def mean(self, values: Tensor) -> Tensor:
        """Row means [rows]; 0 for an empty row."""
        total = self.sum(values if values.is_floating_point() else values.float())
        return total / self.lengths.clamp(min=1).to(total.dtype)

    def expand(self, row_values: Tensor) -> Tensor:
        """[rows] -> [tokens]: the value of each token's row."""
        return row_values.index_select(0, self.row_of)

    def first(self, values: Tensor, *, empty: float = 0.0) -> Tensor:
        """[tokens] -> [rows]: value at the first token; ``empty`` for a row without tokens."""
        return self._pick(values, self.offsets[:-1], empty)

    def last(self, values: Tensor, *, empty: float = 0.0) -> Tensor:
        """[tokens] -> [rows]: value at the last token; ``empty`` for a row without tokens."""
        return self._pick(values, self.offsets[1:] - 1, empty)

    def next_value(self, values: Tensor, bootstrap: Tensor | None = None) -> Tensor:
        """[tokens]: value at the row's next token; at its end ``bootstrap`` [rows], or 0. No row sees another."""
        ends = self.offsets[1:][self.filled] - 1
        if bootstrap is None:
            return values.roll(-1).index_fill(0, ends, 0.0)
        return values.roll(-1).index_copy(0, ends, bootstrap[self.filled].to(values.dtype))

    def cumsum(self, values: Tensor) -> Tensor:
        """Running sum from each row's start, inclusive, accumulated in float64. Differentiable."""
        return forward_scan(torch.ones_like(values), values, self.offsets)

    def running_min(self, values: Tensor) -> Tensor:
        """Smallest value from each row's start, inclusive. Differentiable."""
        position, reach = self.position, 1
        while reach < self.longest:
            values = torch.where(position >= reach, torch.minimum(values, values.roll(reach)), values)
            reach *= 2
        return values

    def reverse_scan(self, decay: Tensor, increments: Tensor) -> Tensor:
        """``x_t = increments_t + decay_t · x_{t+1}``, with ``x = 0`` after each row's end. Differentiable."""
        return reverse_scan(decay, increments, self.offsets)

    def tokens_of(self, rows: Sequence[int]) -> Tensor:
        """i64: places of the tokens of ``rows``, in that order."""
        chosen = torch.tensor(list(rows), dtype=torch.int64, device=self.lengths.device)
        lengths = self.lengths[chosen]
        count = int(lengths.sum())
        starts = self.offsets[:-1][chosen]
        before = torch.cumsum(lengths, 0) - lengths
        shift = torch.repeat_interleave(starts - before, lengths, output_size=count)
        return torch.arange(count, device=shift.device) + shift

    def _pick(self, values: Tensor, places: Tensor, empty: float) -> Tensor:
        picked = values.index_select(0, places[self.filled])
        return values.new_full((self.rows,), empty).index_copy(0, self.filled, picked)
