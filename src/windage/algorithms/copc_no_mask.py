"""Ablation of COPC: the returns are corrected, the policy update weighs every token by its ratio."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from windage.algorithms.entry import Entry
from windage.algorithms.settings import CriticSettings, Interval, Lambda

if TYPE_CHECKING:
    from windage.algorithms.algorithm import Algorithm

__all__ = ["COPC_NO_MASK"]


class CopcNoMaskSettings(CriticSettings):
    """COPC without the policy's interval."""

    clip: Interval = Field(default=(0.8, 1.2), description="Interval of the weights on TD residuals.")
    lam_actor: Lambda = Field(default=1.0, description="λ of the advantages, or {alpha: a} for a length-adaptive one.")
    lam_critic: Lambda = Field(default=1.0, description="λ of the critic's targets.")
    trace: Literal["product", "residual"] = Field(default="product", description="How the weights accumulate.")
    actor_adv: Literal["next", "own"] = Field(default="next", description="Does an advantage carry its own weight?")


def _build(settings: CopcNoMaskSettings) -> Algorithm:
    from windage.algorithms.algorithm import Algorithm
    from windage.algorithms.lam import lam_of
    from windage.corrections.truncate import truncate
    from windage.objectives.reinforce import reinforce
    from windage.reduce import token_mean
    from windage.returns.copc import copc

    return Algorithm(
        name=COPC_NO_MASK.name,
        returns=partial(
            copc,
            gamma=settings.gamma,
            lam_actor=lam_of(settings.lam_actor),
            lam_critic=lam_of(settings.lam_critic),
            clip=settings.clip,
            trace=settings.trace,
            actor_adv=settings.actor_adv,
        ),
        corrections=partial(truncate, interval=(0.0, math.inf)),
        objective=reinforce,
        reduce=token_mean,
        needs=COPC_NO_MASK.needs,
        whiten=settings.whiten,
        value_clip=settings.value_clip,
        trace=settings.clip,
        settings=settings.model_dump(),
    )


COPC_NO_MASK = Entry(
    name="copc_no_mask",
    summary="Ablation: COPC's returns, every token weighs its ratio",
    settings=CopcNoMaskSettings,
    build=_build,
    needs=frozenset({"critic", "entry"}),
)
