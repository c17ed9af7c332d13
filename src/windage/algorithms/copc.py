"""COPC: coupled off-policy correction of returns and of the policy update (2610.09597)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from windage.algorithms.entry import Entry
from windage.algorithms.settings import Band, CriticSettings, Interval, Lambda

if TYPE_CHECKING:
    from windage.algorithms.algorithm import Algorithm

__all__ = ["COPC"]


class CopcSettings(CriticSettings):
    """Two intervals, tuned together: ``clip`` for the returns, ``band`` for the policy."""

    clip: Interval = Field(default=(0.8, 1.2), description="Interval of the weights on TD residuals.")
    band: Band = Field(default=(0.5, 2.0), description="Ratios outside do not count in the policy update.")
    lam_actor: Lambda = Field(default=1.0, description="λ of the advantages, or {alpha: a} for a length-adaptive one.")
    lam_critic: Lambda = Field(default=1.0, description="λ of the critic's targets.")
    trace: Literal["product", "residual"] = Field(default="product", description="How the weights accumulate.")
    actor_adv: Literal["next", "own"] = Field(default="next", description="Does an advantage carry its own weight?")


def _build(settings: CopcSettings) -> Algorithm:
    from windage.algorithms.algorithm import Algorithm
    from windage.algorithms.lam import lam_of
    from windage.corrections.mask import mask
    from windage.objectives.reinforce import reinforce
    from windage.reduce import token_mean
    from windage.returns.copc import copc

    return Algorithm(
        name=COPC.name,
        returns=partial(
            copc,
            gamma=settings.gamma,
            lam_actor=lam_of(settings.lam_actor),
            lam_critic=lam_of(settings.lam_critic),
            clip=settings.clip,
            trace=settings.trace,
            actor_adv=settings.actor_adv,
        ),
        corrections=partial(mask, band=settings.band),
        objective=reinforce,
        reduce=token_mean,
        needs=COPC.needs,
        whiten=settings.whiten,
        value_clip=settings.value_clip,
        trace=settings.clip,
        settings=settings.model_dump(),
    )


COPC = Entry(
    name="copc",
    summary="Returns and policy update both corrected for staleness, each with its own interval",
    settings=CopcSettings,
    build=_build,
    needs=frozenset({"critic", "entry"}),
)
