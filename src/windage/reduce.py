"""Reduction of per-token losses. Denominators belong to the whole batch, so any cut into parts adds up to the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from windage.segments import Segments

__all__ = ["Rows", "Totals", "constant", "seq_mean_token_mean", "seq_mean_token_sum", "token_mean", "totals"]


class Rows(Protocol):
    """What a reduction reads of a TokenBatch, for each row: its trajectory, tokens before any was dropped, aborted."""

    @property
    def segments(self) -> Segments: ...  # noqa: D102
    @property
    def trajectory_of(self) -> Tensor: ...  # noqa: D102
    @property
    def sampled(self) -> Tensor: ...  # noqa: D102
    @property
    def aborted(self) -> Tensor: ...  # noqa: D102


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Totals:
    """Structural denominators of a whole batch: what was sampled, also where it was masked or dropped later.

    ``tokens``             action tokens
    ``trajectories``       trajectories, also those without any token; a trajectory cut into n rows counts once
    ``trajectory_tokens``  i64 [largest trajectory index + 1]
    """

    tokens: int
    trajectories: int
    trajectory_tokens: Tensor


def totals(batch: Rows) -> Totals:
    """Count ``batch``; aborted trajectories are not in it."""
    valid = batch.trajectory_of[~batch.aborted]
    size = int(valid.max()) + 1 if len(valid) else 0
    per = batch.sampled.new_zeros(size).index_add(0, valid, batch.sampled[~batch.aborted])
    return Totals(tokens=int(batch.sampled.sum()), trajectories=len(torch.unique(valid)), trajectory_tokens=per)


def token_mean(loss: Tensor, batch: Rows, totals: Totals) -> Tensor:
    """``Σ ℓ / tokens``: long trajectories weigh more. DAPO, COPC, prime-rl."""
    del batch
    return loss.sum() / max(totals.tokens, 1)


def seq_mean_token_mean(loss: Tensor, batch: Rows, totals: Totals) -> Tensor:
    """``mean over trajectories of (Σ ℓ / its tokens)``: every trajectory weighs the same. GRPO, GSPO."""
    own = totals.trajectory_tokens[batch.trajectory_of[batch.segments.row_of]]
    return (loss / own.clamp(min=1)).sum() / max(totals.trajectories, 1)


def seq_mean_token_sum(loss: Tensor, batch: Rows, totals: Totals) -> Tensor:
    """``Σ ℓ / trajectories``: the sequence policy gradient."""
    del batch
    return loss.sum() / max(totals.trajectories, 1)


def constant(loss: Tensor, batch: Rows, totals: Totals, *, length: int) -> Tensor:
    """``Σ ℓ / (trajectories · length)``: no token's weight depends on the length of its answer. Dr.GRPO."""
    return seq_mean_token_sum(loss, batch, totals) / length
