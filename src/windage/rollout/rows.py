"""RowBuilder: one growing, token-exact model input with everything the learner needs beside each token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from windage.engines.protocol import Completion
from windage.records import Row, StopReason

__all__ = ["RowBuilder"]


class RowBuilder:
    """Append-only. What the policy sampled is an action; everything else is context."""

    def __init__(self, prompt: Sequence[int]) -> None:
        self.token_ids: list[int] = list(prompt)
        self._mask: list[bool] = [False] * len(prompt)
        self._logprobs: list[float] = [np.nan] * len(prompt)
        self._versions: list[int] = [-1] * len(prompt)
        self._turns: list[int] = [-1] * len(prompt)
        self._entropy: list[float] = [np.nan] * len(prompt)
        self._rewards: dict[int, float] = {}
        self._has_entropy = False
        self._routes: NDArray[np.integer] | None = None

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def actions(self) -> int:
        """Sampled tokens so far."""
        return sum(self._mask)

    def sampled(self, completion: Completion, *, turn: int) -> tuple[int, int]:
        """Append what the policy sampled; its span in the row."""
        start, count = len(self.token_ids), len(completion.token_ids)
        self.token_ids += map(int, completion.token_ids)
        self._mask += [True] * count
        self._logprobs += map(float, completion.logprobs)
        self._versions += map(int, completion.policy_version)
        self._turns += [turn] * count
        if completion.entropy is not None:
            self._has_entropy = True
            self._entropy += map(float, completion.entropy)
        else:
            self._entropy += [np.nan] * count
        if completion.routes is not None:
            self._routes = completion.routes  # of the whole input so far: the prompt of a turn is all that came before
        return start, start + count

    def observed(self, token_ids: Sequence[int]) -> None:
        """Append what the environment showed: context, never trained."""
        count = len(token_ids)
        self.token_ids += map(int, token_ids)
        self._mask += [False] * count
        self._logprobs += [np.nan] * count
        self._versions += [-1] * count
        self._turns += [-1] * count
        self._entropy += [np.nan] * count

    def reward(self, amount: float) -> None:
        """Give ``amount`` to the last action token, also when an observation earned it: sums are kept (trap 34)."""
        last = max((index for index, action in enumerate(self._mask) if action), default=None)
        if last is None:
            raise ValueError("a reward before the first action")
        self._rewards[last] = self._rewards.get(last, 0.0) + amount

    def build(self, *, row_id: str, trajectory_id: str, group_id: str, stop_reason: StopReason) -> Row:
        """The finished row.

        Raises:
            RecordError: it breaks an invariant of :class:`~windage.records.Row`.
        """
        rewards = np.zeros(len(self.token_ids), np.float32)
        for index, amount in self._rewards.items():
            rewards[index] = amount
        return Row(
            row_id=row_id,
            trajectory_id=trajectory_id,
            group_id=group_id,
            token_ids=np.asarray(self.token_ids, np.int32),
            action_mask=np.asarray(self._mask, bool),
            behavior_logprobs=np.asarray(self._logprobs, np.float32),
            policy_version=np.asarray(self._versions, np.int32),
            rewards=rewards,
            turn_ids=np.asarray(self._turns, np.int32),
            stop_reason=stop_reason,
            entropy=np.asarray(self._entropy, np.float32) if self._has_entropy else None,
            routes=self._padded_routes(),
        )

    def _padded_routes(self) -> NDArray[np.integer] | None:
        """Routes of every position; those that no engine computed (the last token's) hold the dtype's largest value."""
        if self._routes is None:
            return None
        layers, known, chosen = self._routes.shape
        total = len(self.token_ids)
        padded = np.full((layers, total, chosen), np.iinfo(self._routes.dtype).max, dtype=self._routes.dtype)
        padded[:, : min(known, total)] = self._routes[:, :total]
        return padded
