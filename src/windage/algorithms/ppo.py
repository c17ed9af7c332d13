"""PPO with a critic; asynchronous when its ratio is taken against the engine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from windage.algorithms.entry import Entry
from windage.algorithms.settings import ClipMargins, CriticSettings, Lambda

if TYPE_CHECKING:
    from windage.algorithms.algorithm import Algorithm

__all__ = ["PPO"]


class PpoSettings(CriticSettings):
    """``anchor`` decides what staleness means to the clip."""

    clip: ClipMargins = Field(default=(0.2, 0.2), description="How far the ratio may move below and above 1.")
    dual_clip: float | None = Field(default=None, gt=1, description="Cap on the ratio where the advantage is negative.")
    anchor: Literal["behavior", "entry"] = Field(
        default="behavior", description="Ratio against the engine's log-probs, or the learner's at batch entry (sync)."
    )
    lam_actor: Lambda = Field(default=1.0, description="λ of the advantages, or {alpha: a} for a length-adaptive one.")
    lam_critic: Lambda = Field(default=1.0, description="λ of the critic's targets.")


def _build(settings: PpoSettings) -> Algorithm:
    from windage.algorithms.algorithm import Algorithm
    from windage.algorithms.lam import lam_of
    from windage.objectives.ppo_clip import ppo_clip
    from windage.reduce import token_mean
    from windage.returns.gae import gae

    return Algorithm(
        name=PPO.name,
        returns=partial(
            gae,
            gamma=settings.gamma,
            lam_actor=lam_of(settings.lam_actor),
            lam_critic=lam_of(settings.lam_critic),
        ),
        corrections=None,
        objective=partial(ppo_clip, clip=settings.clip, dual_clip=settings.dual_clip),
        reduce=token_mean,
        needs=PPO.needs | ({"entry"} if settings.anchor == "entry" else frozenset[str]()),
        anchor=settings.anchor,
        whiten=settings.whiten,
        value_clip=settings.value_clip,
        settings=settings.model_dump(),
    )


PPO = Entry(
    name="ppo",
    summary="PPO clip on GAE advantages; against the engine (async) or the entry policy (sync)",
    settings=PpoSettings,
    build=_build,
    needs=frozenset({"critic"}),
)
