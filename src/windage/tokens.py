"""TokenBatch: the action tokens of a batch as 1-D tensors. The one place where any other token is dropped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from windage.records import Row, StopReason, TrainBatch
from windage.segments import Segments

__all__ = ["TokenBatch"]

_FLOATS = ("behavior_logprobs", "rewards", "entropy", "teacher_logprobs")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TokenBatch:
    """Action tokens of ``R`` rows, ``N`` in all, in row order.

    Per token, [N]:
        ``token_ids`` i64 · ``behavior_logprobs`` f32 · ``policy_version`` i64 · ``turn_ids`` i64
        ``staleness`` i64          the batch's version minus the token's version
        ``rewards`` f32            the reward of a dropped token moves to the action token before it
        ``entropy`` f32 or None    of the behaviour distribution (nats)
        ``teacher_logprobs`` f32 or None
        ``predict_at`` i64         place, inside its own row, of the input whose logits predict the token

    Per row, [R]:
        ``outcomes`` f32           raw outcome of the row's trajectory
        ``group_of`` i64, ``trajectory_of`` i64   indices of the whole batch, kept by :meth:`select`
        ``truncated`` bool         cut off by a limit: the critic's value at ``last_input`` continues it
        ``aborted`` bool           a row of the trajectory has no end: no tokens here, no say in group statistics
        ``last_input`` i64         place of the row's last token
        ``sampled`` i64            action tokens before any was dropped: the structural denominator

    ``dropped`` counts tokens without a finite behaviour log-prob; they are nowhere in the arrays above.
    """

    segments: Segments
    token_ids: Tensor
    behavior_logprobs: Tensor
    policy_version: Tensor
    staleness: Tensor
    rewards: Tensor
    turn_ids: Tensor
    predict_at: Tensor
    outcomes: Tensor
    group_of: Tensor
    trajectory_of: Tensor
    truncated: Tensor
    aborted: Tensor
    last_input: Tensor
    sampled: Tensor
    entropy: Tensor | None = None
    teacher_logprobs: Tensor | None = None
    dropped: int = 0

    @classmethod
    def from_batch(cls, batch: TrainBatch, device: torch.device | str = "cpu") -> Self:
        """Concatenate the usable action tokens of ``batch.rows``.

        Tokens without a finite behaviour log-prob are dropped and counted; trajectories with an aborted row keep none.
        """
        cut = {of for row, of in _placed(batch) if row.stop_reason is StopReason.ABORTED}
        aborted = [of in cut for _, of in _placed(batch)]
        kept = [_kept(row, gone) for row, gone in zip(batch.rows, aborted, strict=True)]
        arrays = {name: _concatenated(batch.rows, kept, name) for name in _optional(batch.rows)}
        versions = _concatenated(batch.rows, kept, "policy_version")
        rewards = [_moved(row, places) for row, places in zip(batch.rows, kept, strict=True)]
        sampled = [0 if gone else row.action_tokens for row, gone in zip(batch.rows, aborted, strict=True)]

        def move(array: Any, dtype: torch.dtype = torch.int64) -> Tensor:
            return torch.tensor(np.asarray(array), dtype=dtype).to(device)

        return cls(
            segments=Segments.from_lengths([len(places) for places in kept], device=device),
            token_ids=move(_concatenated(batch.rows, kept, "token_ids")),
            behavior_logprobs=move(_concatenated(batch.rows, kept, "behavior_logprobs"), torch.float32),
            policy_version=move(versions),
            staleness=move(batch.version - versions.astype(np.int64)),
            rewards=move(np.concatenate([*rewards, np.zeros(0)]), torch.float32),
            turn_ids=move(_concatenated(batch.rows, kept, "turn_ids")),
            predict_at=move(np.concatenate([*kept, np.zeros(0, np.int64)]) - 1),
            outcomes=move(batch.rewards, torch.float32),
            group_of=move(batch.group_of),
            trajectory_of=move(batch.trajectory_of),
            truncated=move([row.stop_reason is StopReason.TRUNCATED for row in batch.rows], torch.bool),
            aborted=move(aborted, torch.bool),
            last_input=move([len(row) - 1 for row in batch.rows]),
            sampled=move(sampled),
            dropped=sum(sampled) - sum(map(len, kept)),
            **{name: move(array, torch.float32) for name, array in arrays.items()},
        )

    def select(self, rows: Sequence[int]) -> Self:
        """The tokens of some rows, in the order of ``rows``. Group and trajectory indices stay those of the batch."""
        tokens = self.segments.tokens_of(rows)
        chosen = torch.tensor(list(rows), dtype=torch.int64, device=tokens.device)
        changes: dict[str, Any] = {"segments": Segments.from_lengths(self.segments.lengths[chosen])}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Tensor):
                changes[field.name] = value[chosen if field.name in _PER_ROW else tokens]
        part = replace(self, **changes)
        return replace(part, dropped=int(part.sampled.sum()) - part.segments.tokens)


_PER_ROW = frozenset({"outcomes", "group_of", "trajectory_of", "truncated", "aborted", "last_input", "sampled"})


def _placed(batch: TrainBatch) -> list[tuple[Row, int]]:
    """Each row with the index of its trajectory."""
    return list(zip(batch.rows, batch.trajectory_of.tolist(), strict=True))


def _kept(row: Row, aborted: bool) -> NDArray[np.int64]:
    """Places of the action tokens that can be trained on."""
    if aborted:
        return np.zeros(0, np.int64)
    return np.flatnonzero(row.action_mask & np.isfinite(row.behavior_logprobs))


def _moved(row: Row, places: NDArray[np.int64]) -> NDArray[np.float64]:
    """Rewards at ``places``; what lies between two of them goes to the earlier one, so that the sum is preserved."""
    if not len(places):
        return np.zeros(0)
    paid = np.flatnonzero(row.rewards)
    target = np.maximum(np.searchsorted(places, paid, side="right") - 1, 0)
    return np.bincount(target, weights=row.rewards[paid], minlength=len(places)).astype(np.float64)


def _optional(rows: Sequence[Row]) -> list[str]:
    """Optional token arrays that every row has."""
    return [
        name for name in ("entropy", "teacher_logprobs") if rows and all(getattr(r, name) is not None for r in rows)
    ]


def _concatenated(rows: Sequence[Row], kept: Sequence[NDArray[np.int64]], name: str) -> NDArray[Any]:
    parts = [getattr(row, name)[places] for row, places in zip(rows, kept, strict=True)]
    return np.concatenate(parts) if parts else np.zeros(0, np.float32 if name in _FLOATS else np.int64)
