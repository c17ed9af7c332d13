"""AReaL: PPO clip around the entry policy, weighted back to the sampling policy (2505.24298)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from windage.algorithms.entry import Entry
from windage.algorithms.settings import ClipMargins, CriticSettings, Lambda, TruncationLimit

if TYPE_CHECKING:
    from windage.algorithms.algorithm import Algorithm

__all__ = ["AREAL"]


class ArealSettings(CriticSettings):
    """Decoupled: what limits the step is not what corrects for the sampler."""

    clip: ClipMargins = Field(default=(0.2, 0.2), description="How far the ratio to the entry policy may move.")
    dual_clip: float | None = Field(default=None, gt=1, description="Cap on the ratio where the advantage is negative.")
    weight_max: TruncationLimit = Field(default=5.0, description="Tokens whose entry weight reaches this do not count.")
    lam_actor: Lambda = Field(default=1.0, description="λ of the advantages, or {alpha: a} for a length-adaptive one.")
    lam_critic: Lambda = Field(default=1.0, description="λ of the critic's targets.")


def _build(settings: ArealSettings) -> Algorithm:
    from windage.algorithms.algorithm import Algorithm
    from windage.algorithms.lam import lam_of
    from windage.corrections.decoupled import decoupled
    from windage.objectives.ppo_clip import ppo_clip
    from windage.reduce import token_mean
    from windage.returns.gae import gae

    return Algorithm(
        name=AREAL.name,
        returns=partial(
            gae,
            gamma=settings.gamma,
            lam_actor=lam_of(settings.lam_actor),
            lam_critic=lam_of(settings.lam_critic),
        ),
        corrections=partial(decoupled, weight_max=settings.weight_max),
        objective=partial(ppo_clip, clip=settings.clip, dual_clip=settings.dual_clip),
        reduce=token_mean,
        needs=AREAL.needs,
        anchor="entry",
        whiten=settings.whiten,
        value_clip=settings.value_clip,
        settings=settings.model_dump(),
    )


AREAL = Entry(
    name="areal",
    summary="Decoupled PPO: clip around the entry policy, weight back to the engine",
    settings=ArealSettings,
    build=_build,
    needs=frozenset({"critic", "entry"}),
)
