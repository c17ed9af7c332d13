"""GRPO: outcomes relative to the group, PPO clip (2402.03300)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from windage.algorithms.entry import Entry
from windage.algorithms.settings import ClipMargins, Settings

if TYPE_CHECKING:
    from windage.algorithms.algorithm import Algorithm

__all__ = ["GRPO"]


class GrpoSettings(Settings):
    """``scale: none`` with ``reduce: constant`` is Dr.GRPO; ``baseline: others`` is leave-one-out."""

    clip: ClipMargins = Field(default=(0.2, 0.2), description="How far the ratio may move below and above 1.")
    dual_clip: float | None = Field(default=None, gt=1, description="Cap on the ratio where the advantage is negative.")
    anchor: Literal["behavior", "entry"] = Field(
        default="behavior", description="Ratio against the engine's log-probs, or the learner's at batch entry (sync)."
    )
    baseline: Literal["mean", "others"] = Field(
        default="mean", description="Mean of the group, or of the others in it."
    )
    scale: Literal["std", "none"] | None = Field(
        default=None, description="Division by the group's standard deviation; default: with baseline mean only."
    )
    reduce: Literal["seq_mean_token_mean", "seq_mean_token_sum", "token_mean"] | Annotated[int, Field(ge=1)] = Field(
        default="seq_mean_token_mean", description="How tokens are weighted; a number n divides every sum by n tokens."
    )

    @model_validator(mode="after")
    def _scale_has_a_meaning(self) -> Self:
        if self.baseline == "others" and self.scale == "std":
            raise ValueError("scale: none, or no scale, with baseline: others (leave-one-out is not divided)")
        return self


def _build(settings: GrpoSettings) -> Algorithm:
    from windage import reduce
    from windage.algorithms.algorithm import Algorithm
    from windage.objectives.ppo_clip import ppo_clip
    from windage.returns.group_mean import group_mean
    from windage.returns.leave_one_out import leave_one_out

    chosen = settings.reduce
    return Algorithm(
        name=GRPO.name,
        returns=leave_one_out if settings.baseline == "others" else partial(group_mean, scale=settings.scale or "std"),
        corrections=None,
        objective=partial(ppo_clip, clip=settings.clip, dual_clip=settings.dual_clip),
        reduce=partial(reduce.constant, length=chosen) if isinstance(chosen, int) else getattr(reduce, chosen),
        needs=GRPO.needs | ({"entry"} if settings.anchor == "entry" else frozenset[str]()),
        anchor=settings.anchor,
        settings=settings.model_dump(),
    )


GRPO = Entry(
    name="grpo",
    summary="Outcomes relative to the group's mean, PPO clip, every trajectory weighs the same",
    settings=GrpoSettings,
    build=_build,
    needs=frozenset({"groups"}),
)
