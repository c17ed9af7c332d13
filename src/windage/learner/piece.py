"""Piece: the rows of one micro-batch, packed, with the way back to the whole batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from windage.learner.forward import places
from windage.learner.packed import Packed, pack
from windage.records import TrainBatch
from windage.tokens import TokenBatch

__all__ = ["Piece", "cut"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """``n`` action tokens of some rows.

    ``index``       i64 [n]     where they stand in the whole TokenBatch
    ``predict_at``  i64 [n]     packed position whose hidden state predicts them
    ``last_input``  i64 [rows]  packed position of each row's last token (value: bootstrap)
    ``rows``        i64 [rows]  where the rows stand in the whole batch
    """

    packed: Packed
    tokens: TokenBatch
    index: Tensor
    rows: Tensor
    predict_at: Tensor
    last_input: Tensor


def cut(batch: TrainBatch, whole: TokenBatch, *, only: Sequence[int] | None = None) -> list[Piece]:
    """The micro-batches of ``batch`` as pieces (of the rows ``only``); rows without action tokens are left out."""
    wanted = set(range(len(batch.rows)) if only is None else only)
    lengths = whole.segments.lengths.tolist()
    chosen = [[row for row in micro.rows if row in wanted and lengths[row] > 0] for micro in batch.micro_batches]
    return [_piece(batch, whole, rows) for rows in chosen if rows]


def _piece(batch: TrainBatch, whole: TokenBatch, rows: list[int]) -> Piece:
    device = whole.token_ids.device
    packed = pack([batch.rows[row].token_ids for row in rows], device=device)
    tokens = whole.select(rows)
    here = torch.arange(len(rows), device=device)
    return Piece(
        packed=packed,
        tokens=tokens,
        index=whole.segments.tokens_of(rows),
        rows=torch.tensor(rows, device=device),
        predict_at=places(packed, row=tokens.segments.row_of, inside=tokens.predict_at),
        last_input=places(packed, row=here, inside=tokens.last_input),
    )
