"""Objectives: unreduced loss of each action token. None of them knows a denominator."""

from windage.objectives.masked_ratio import masked_ratio
from windage.objectives.ppo_clip import ppo_clip
from windage.objectives.reinforce import reinforce

__all__ = ["masked_ratio", "ppo_clip", "reinforce"]
