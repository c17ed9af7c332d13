"""Chains: the rows of one trajectory joined end to end, so that credit flows through an episode cut into rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from windage.segments import Segments
from windage.tokens import TokenBatch

__all__ = ["Chains"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chains:
    """One segment a trajectory. How an episode ended is known from its last row.

    ``order``  i64 [tokens]        places of the batch's tokens in chain order; None: as they are
    ``last``   i64 [trajectories]  last row of each trajectory
    """

    segments: Segments
    order: Tensor | None
    last: Tensor

    @classmethod
    def of(cls, batch: TokenBatch) -> Chains:
        """Join the rows of ``batch`` by trajectory index, keeping the order of rows inside a trajectory."""
        rows = batch.segments.rows
        place = torch.arange(rows, device=batch.trajectory_of.device)
        found, chain_of = torch.unique(batch.trajectory_of, return_inverse=True)
        if len(found) == rows:
            return cls(segments=batch.segments, order=None, last=place)
        lengths = torch.zeros_like(found).index_add(0, chain_of, batch.segments.lengths)
        last = torch.zeros_like(found).scatter_reduce(0, chain_of, place, "amax", include_self=False)
        order = torch.argsort(chain_of[batch.segments.row_of], stable=True)
        return cls(segments=Segments.from_lengths(lengths), order=order, last=last)

    def join(self, tokens: Tensor) -> Tensor:
        """Tokens of the batch in chain order."""
        return tokens if self.order is None else tokens[self.order]

    def split(self, tokens: Tensor) -> Tensor:
        """Tokens in chain order back to the order of the batch."""
        return tokens if self.order is None else torch.empty_like(tokens).index_copy(0, self.order, tokens)
