"""LearnerState: everything that moves. What is not in here is not in a checkpoint."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from windage.learner.critic import SeparateCritic, ValueHead
from windage.learner.model import Policy
from windage.learner.optimizer import Optimizer

__all__ = ["LearnerState"]


@dataclass(slots=True, kw_only=True)
class LearnerState:
    """Policy, critic and their optimizers, with four counters.

    ``version``          last published version; -1 before the first
    ``step``             batches consumed, skipped ones included
    ``critic_batches``   batches the critic has learnt from: the first ``warmup`` of them do not move the policy
    """

    policy: Policy
    optimizer: Optimizer
    critic: ValueHead | SeparateCritic | None = None
    critic_optimizer: Optimizer | None = None
    version: int = -1
    step: int = 0
    critic_batches: int = 0

    @property
    def modules(self) -> dict[str, nn.Module]:
        """The modules by name."""
        found: dict[str, nn.Module] = {"policy": self.policy.hf}
        if self.critic is not None:
            found["critic"] = self.critic
        return found

    @property
    def optimizers(self) -> dict[str, Optimizer]:
        """The optimizers by name."""
        found = {"policy": self.optimizer}
        if self.critic_optimizer is not None:
            found["critic"] = self.critic_optimizer
        return found
