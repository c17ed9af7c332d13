"""DAPO: group-relative outcomes, a wider upper clip, every token weighs the same (2503.14476)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from windage.algorithms.entry import Entry
from windage.algorithms.settings import ClipMargins, Settings

if TYPE_CHECKING:
    from windage.algorithms.algorithm import Algorithm

__all__ = ["DAPO"]


class Overlong(Settings):
    """Soft penalty: 0 up to ``limit - buffer`` tokens, falling to -1 at ``limit``."""

    limit: int = Field(ge=1, description="Tokens at which the penalty is -1.")
    buffer: int = Field(ge=1, description="Tokens before the limit over which it grows.")


class DapoSettings(Settings):
    """Groups whose raw outcomes are all equal give no gradient; refilling them is the queue's business."""

    clip: ClipMargins = Field(default=(0.2, 0.28), description="How far the ratio may move below and above 1.")
    dual_clip: float | None = Field(default=None, gt=1, description="Cap on the ratio where the advantage is negative.")
    anchor: Literal["behavior", "entry"] = Field(
        default="behavior", description="Ratio against the engine's log-probs, or the learner's at batch entry (sync)."
    )
    overlong: Overlong | None = Field(default=None, description="Penalty for answers near the length limit.")


def _build(settings: DapoSettings) -> Algorithm:
    from windage.algorithms.algorithm import Algorithm
    from windage.algorithms.shaped import shaped
    from windage.objectives.ppo_clip import ppo_clip
    from windage.reduce import token_mean
    from windage.returns.group_mean import group_mean

    penalty = settings.overlong
    return Algorithm(
        name=DAPO.name,
        returns=group_mean if penalty is None else partial(shaped, limit=penalty.limit, buffer=penalty.buffer),
        corrections=None,
        objective=partial(ppo_clip, clip=settings.clip, dual_clip=settings.dual_clip),
        reduce=token_mean,
        needs=DAPO.needs | ({"entry"} if settings.anchor == "entry" else frozenset[str]()),
        anchor=settings.anchor,
        settings=settings.model_dump(),
    )


DAPO = Entry(
    name="dapo",
    summary="GRPO with a wider upper clip and token-mean; optional length penalty",
    settings=DapoSettings,
    build=_build,
    needs=frozenset({"groups"}),
)
