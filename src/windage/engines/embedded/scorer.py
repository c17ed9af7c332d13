"""Log-probs of given tokens under the current weights, a few thousand tokens at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from windage.engines.embedded.model import ServedModel
from windage.engines.embedded.plan import Plan, pieces_alone

__all__ = ["score_in_chunks"]

_HEAD_ROWS = 512


def score_in_chunks(
    model: ServedModel, rows: Sequence[NDArray[np.int32]], *, temperature: float, chunk: int
) -> Iterator[list[NDArray[np.float32]]]:
    """Scores of the next few rows at every step, so that a long job does not hold up sampling.

        score_t = log softmax(logits_{t-1} / T)[token_t],  score_0 = NaN

    Arguments:
        rows: token ids, each [length >= 1]
        temperature: T > 0
        chunk: tokens in one forward pass; a longer row goes alone
    """
    begin = 0
    while begin < len(rows):
        stop, tokens = begin + 1, len(rows[begin])
        while stop < len(rows) and tokens + len(rows[stop]) <= chunk:
            tokens += len(rows[stop])
            stop += 1
        yield _score(model, rows[begin:stop], temperature)
        begin = stop


def _score(model: ServedModel, rows: Sequence[NDArray[np.int32]], temperature: float) -> list[NDArray[np.float32]]:
    plan = Plan(pieces=pieces_alone([row.tolist() for row in rows]), store=None, device=model.device)
    hidden = model.hidden(plan)
    if model.capture is not None:
        model.capture.take()
    inputs = [place for row, last in zip(rows, plan.last, strict=True) for place in range(last - len(row) + 1, last)]
    wanted = [token for row in rows for token in row[1:].tolist()]
    scores: list[float] = []
    for begin in range(0, len(inputs), _HEAD_ROWS):
        logits = model.logits(hidden[inputs[begin : begin + _HEAD_ROWS]]) / temperature
        targets = torch.tensor(wanted[begin : begin + _HEAD_ROWS], device=model.device)[:, None]
        scores.extend((logits.gather(1, targets)[:, 0] - logits.logsumexp(-1)).tolist())
    ends = np.cumsum([len(row) - 1 for row in rows])
    parts = np.split(np.array(scores, dtype=np.float32), ends[:-1])
    return [np.concatenate((np.array([np.nan], dtype=np.float32), part)) for part in parts]
