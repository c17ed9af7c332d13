"""What of tool_math can fail without the model being wrong; ``reason`` is the ledger's word for it."""

from __future__ import annotations

from windage.errors import EnvironmentFailure

__all__ = ["RewardError", "RewardTimeout", "ToolBroken", "ToolTimeout"]


class ToolTimeout(EnvironmentFailure):
    """No sandbox became free in time."""

    reason = "tool_timeout"


class ToolBroken(EnvironmentFailure):
    """A sandbox process died under a call."""

    reason = "environment"


class RewardTimeout(EnvironmentFailure):
    """Scoring ran out of time; the judge was killed and will be replaced."""

    reason = "reward_timeout"


class RewardError(EnvironmentFailure):
    """The judge died or could not score."""

    reason = "reward_error"
