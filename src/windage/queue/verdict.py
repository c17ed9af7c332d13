"""Judge: is a finished group worth training, worth another try, or given up? And which sampled tokens are lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from windage.queue.config import QueueConfig
from windage.queue.ledger import Loss
from windage.records import Trajectory, TrajectoryGroup

__all__ = ["Verdict", "judge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What happens to a group.

    ``wasted``   sampled tokens that will never be trained, by reason
    ``constant`` all survivors have the same raw outcome: no group-relative gradient (kept for the critic)
    """

    kind: Literal["accept", "retry", "retire"]
    loss: Loss = "failed"
    reason: str = ""
    wasted: Mapping[str, int]
    constant: bool = False


def judge(group: TrajectoryGroup, *, config: QueueConfig, tries: int, tokens: int) -> Verdict:
    """Accept ``min_group`` survivors; otherwise retry while a service was to blame and ``tries`` are left; else retire.

    A survivor is a trajectory with an action token. A group that lost members to services alone is retried even if
    the survivors were few; one that the policy itself spoilt would fail again. ``tokens`` is what its members sampled.
    """
    survivors = [trajectory for trajectory in group.trajectories if _sampled(trajectory)]
    wasted = Counter[str]()
    for failure in group.failures:
        wasted[failure.reason] += failure.tokens
    if survivors and len(survivors) >= min(config.min_group, group.task.group_size):
        return Verdict(kind="accept", wasted=wasted, constant=_constant(survivors))
    again = tries < config.retries and any(failure.retry for failure in group.failures)
    wasted["retried" if again else "incomplete"] += tokens
    if again:
        return Verdict(kind="retry", wasted=wasted)
    reasons = Counter(failure.reason for failure in group.failures)
    if not reasons:
        return Verdict(kind="retire", loss="rejected", reason="no_action", wasted=wasted)
    return Verdict(kind="retire", reason=reasons.most_common(1)[0][0], wasted=wasted)


def _sampled(trajectory: Trajectory) -> bool:
    return any(row.action_mask.any() for row in trajectory.rows)


def _constant(survivors: Sequence[Trajectory]) -> bool:
    rewards = [trajectory.reward for trajectory in survivors]
    return len(rewards) > 1 and max(rewards) - min(rewards) <= 1e-8
