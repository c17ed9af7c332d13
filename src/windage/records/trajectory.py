"""Rows, turns, trajectories and their groups: what a rollout hands to the queue.

A row is *one model input to train on*. An episode whose history only ever grew is one row; an episode whose chat
template rewrote earlier turns is several (a *fork*), each token-exact for the request that produced its tokens.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from windage.errors import RecordError, explain
from windage.records.task import Task

__all__ = ["Failure", "Row", "StopReason", "Trajectory", "TrajectoryGroup", "Turn"]


class StopReason(StrEnum):
    """Why an episode ended. Truncated is not terminated: it bootstraps from the critic (methods A.1.5)."""

    EOS = "eos"
    ENV_DONE = "env_done"
    TRUNCATED = "truncated"
    ABORTED = "aborted"

    @property
    def terminal(self) -> bool:
        """True where the value after the last token is zero by definition."""
        return self in (StopReason.EOS, StopReason.ENV_DONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One model call and its reply, as a span of one row: ``token_ids[start:stop]`` are the sampled tokens."""

    turn_id: int
    row: int
    start: int
    stop: int
    finish_reason: str
    text: str = ""
    observation: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One contiguous model input of ``T`` tokens with everything the learner needs, and nothing it must guess.

    ``token_ids``          int32 [T]  prompt, sampled and observed tokens
    ``action_mask``        bool  [T]  True only where *this policy sampled the token*
    ``behavior_logprobs``  f32   [T]  engine log-prob of the token under the distribution really sampled from;
                                      NaN off the action mask; a NaN *on* it marks a token to drop and count
    ``policy_version``     int32 [T]  version of the published weights that sampled the token; -1 off the mask
    ``rewards``            f32   [T]  per-token reward; a reward on an observation is moved to the preceding action
    ``turn_ids``           int32 [T]  turn of each action token, non-decreasing; -1 off the mask
    ``entropy``            f32   [T]  optional, of the behaviour distribution (nats)
    ``routes``             uint8/int32 [layers, T, k]  optional, experts chosen by the engine
    ``teacher_logprobs``   f32   [T]  optional; NaN where the teacher has no valid score
    """

    row_id: str
    trajectory_id: str
    group_id: str
    token_ids: NDArray[np.int32]
    action_mask: NDArray[np.bool_]
    behavior_logprobs: NDArray[np.float32]
    policy_version: NDArray[np.int32]
    rewards: NDArray[np.float32]
    turn_ids: NDArray[np.int32]
    stop_reason: StopReason
    entropy: NDArray[np.float32] | None = None
    routes: NDArray[np.integer] | None = None
    teacher_logprobs: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        _check_shapes(self)
        _check_actions(self)
        for name in _TOKEN_ARRAYS:
            array = getattr(self, name)
            if array is not None:
                array.setflags(write=False)

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def action_tokens(self) -> int:
        """Number of tokens this policy sampled."""
        return int(self.action_mask.sum())

    @property
    def version(self) -> int:
        """Row version: the *oldest* version among its action tokens (DESIGN 4); -1 for a row without any."""
        versions = self.policy_version[self.action_mask]
        return int(versions.min()) if len(versions) else -1


_TOKEN_ARRAYS = (
    "token_ids",
    "action_mask",
    "behavior_logprobs",
    "policy_version",
    "rewards",
    "turn_ids",
    "entropy",
    "teacher_logprobs",
    "routes",
)


def _check_shapes(row: Row) -> None:
    tokens = len(row.token_ids)
    lengths = {
        name: len(value) for name in _TOKEN_ARRAYS[:-1] if (value := getattr(row, name)) is not None and value.ndim == 1
    }
    flat = [name for name in _TOKEN_ARRAYS[:-1] if (v := getattr(row, name)) is not None and v.ndim != 1]
    if flat:
        raise RecordError(explain(f"row {row.row_id}: token arrays must be 1-D", got=flat))
    if any(length != tokens for length in lengths.values()):
        raise RecordError(
            explain(
                f"row {row.row_id}: token arrays disagree in length",
                got=lengths,
                expected=f"all {tokens} (len of token_ids)",
                do="record ids, log-probs and versions from the same engine reply; never re-encode text",
            )
        )
    if tokens == 0:
        raise RecordError(explain(f"row {row.row_id} has no tokens", expected="at least a prompt token"))
    if row.routes is not None and (row.routes.ndim != 3 or row.routes.shape[1] != tokens):
        raise RecordError(
            explain(f"row {row.row_id}: routes misshapen", got=row.routes.shape, expected=f"[layers, {tokens}, k]")
        )


def _check_actions(row: Row) -> None:
    mask = row.action_mask
    if bool(mask[0]):
        raise RecordError(
            explain(
                f"row {row.row_id}: first token is marked as sampled",
                expected="at least one prompt token before the first action",
            )
        )
    versions = row.policy_version[mask]
    if (versions < 0).any():
        raise RecordError(
            explain(
                f"row {row.row_id}: action tokens without a policy version",
                got=f"{int((versions < 0).sum())} of {len(versions)}",
                expected="a version >= 0, stamped when the token was sampled",
            )
        )
    turns = row.turn_ids[mask]
    if len(turns) and ((turns < 0).any() or (np.diff(turns) < 0).any()):
        raise RecordError(
            explain(f"row {row.row_id}: turn ids of action tokens must be >= 0 and non-decreasing", got=turns[:16])
        )
    logprobs = row.behavior_logprobs[mask]
    if (logprobs > 1e-4).any():
        raise RecordError(
            explain(
                f"row {row.row_id}: positive behaviour log-prob",
                got=float(np.nanmax(logprobs)),
                expected="<= 0",
                do="check that the engine returns log-probs, not logits",
            )
        )
    rewards = row.rewards
    if not np.isfinite(rewards).all():
        raise RecordError(
            explain(f"row {row.row_id}: reward is not finite", do="a failed reward makes the sample a Failure, not 0")
        )
    if (rewards[~mask] != 0).any():
        raise RecordError(
            explain(
                f"row {row.row_id}: reward on a token the policy did not sample",
                do="fold it into the preceding action token (windage.rollout does)",
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Trajectory:
    """One finished episode. ``reward`` is the raw outcome; shaped rewards live on the rows' tokens.

    ``started``/``finished`` are seconds on the run's monotonic clock.
    ``metrics`` holds the environment's own numbers (``success``, ``tool_calls``, …).
    """

    trajectory_id: str
    group_id: str
    task_id: str
    rows: tuple[Row, ...]
    reward: float
    stop_reason: StopReason
    turns: tuple[Turn, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    started: float = 0.0
    finished: float = 0.0

    def __post_init__(self) -> None:
        if not self.rows:
            raise RecordError(explain(f"trajectory {self.trajectory_id} has no rows", do="record it as a Failure"))
        for row in self.rows:
            if row.trajectory_id != self.trajectory_id or row.group_id != self.group_id:
                raise RecordError(
                    explain(
                        f"row {row.row_id} belongs elsewhere",
                        got=(row.group_id, row.trajectory_id),
                        expected=(self.group_id, self.trajectory_id),
                    )
                )
        if not np.isfinite(self.reward):
            raise RecordError(explain(f"trajectory {self.trajectory_id}: reward is not finite", got=self.reward))

    @property
    def action_tokens(self) -> int:
        """Tokens this policy sampled, over all rows."""
        return sum(row.action_tokens for row in self.rows)

    @property
    def version(self) -> int:
        """Oldest version among the action tokens of all rows; -1 if there are none."""
        return min((row.version for row in self.rows if row.version >= 0), default=-1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An episode that gave nothing to train on, and why. A bad rollout is data, not a crash.

    ``reason`` is a short stable word for the ledger (``engine``, ``tool_timeout``, ``reward_timeout``,
    ``reward_error``, ``environment``, ``invalid_tokens``, ``deadline``, ``no_action``); ``detail`` is for people.
    ``retry`` is True for infrastructure failures, where asking again may help.
    """

    trajectory_id: str
    reason: str
    detail: str = ""
    retry: bool = True
    tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryGroup:
    """The siblings of one task: the unit of admission, staleness and group statistics.

    ``position`` is the admission index (0, 1, 2, …), fixed when the task was let in; a re-issue keeps it.
    """

    group_id: str
    task: Task
    position: int
    trajectories: tuple[Trajectory, ...]
    failures: tuple[Failure, ...] = ()
    attempt: int = 0

    def __post_init__(self) -> None:
        for trajectory in self.trajectories:
            if trajectory.group_id != self.group_id:
                raise RecordError(
                    explain(
                        f"trajectory {trajectory.trajectory_id} belongs to another group",
                        got=trajectory.group_id,
                        expected=self.group_id,
                    )
                )

    @property
    def version(self) -> int:
        """Oldest version among the group's action tokens: the version its staleness is counted from."""
        return min((t.version for t in self.trajectories if t.version >= 0), default=-1)

    @property
    def action_tokens(self) -> int:
        """Sampled tokens of the surviving members."""
        return sum(t.action_tokens for t in self.trajectories)

    @property
    def rows(self) -> tuple[Row, ...]:
        """All rows of all surviving members, in order."""
        return tuple(row for t in self.trajectories for row in t.rows)
