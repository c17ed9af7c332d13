"""SAO: single rollouts, a critic, and a two-sided mask on token ratios (2607.07508)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from windage.algorithms.entry import Entry
from windage.algorithms.settings import Band, CriticSettings, Lambda, LengthAdaptive

if TYPE_CHECKING:
    from windage.algorithms.algorithm import Algorithm

__all__ = ["SAO"]


class SaoSettings(CriticSettings):
    """Published interval for mathematics; (0.2, 4) for code."""

    band: Band = Field(default=(0.7, 6.0), description="Ratios outside do not count in the policy update.")
    lam_actor: Lambda = Field(
        default=LengthAdaptive(alpha=1.5), description="λ of the advantages, or {alpha: a} for a length-adaptive one."
    )
    lam_critic: Lambda = Field(default=1.0, description="λ of the critic's targets.")


def _build(settings: SaoSettings) -> Algorithm:
    from windage.algorithms.algorithm import Algorithm
    from windage.algorithms.lam import lam_of
    from windage.corrections.mask import mask
    from windage.objectives.reinforce import reinforce
    from windage.reduce import token_mean
    from windage.returns.gae import gae

    return Algorithm(
        name=SAO.name,
        returns=partial(
            gae,
            gamma=settings.gamma,
            lam_actor=lam_of(settings.lam_actor),
            lam_critic=lam_of(settings.lam_critic),
        ),
        corrections=partial(mask, band=settings.band),
        objective=reinforce,
        reduce=token_mean,
        needs=SAO.needs,
        whiten=settings.whiten,
        value_clip=settings.value_clip,
        settings=settings.model_dump(),
    )


SAO = Entry(
    name="sao",
    summary="Masked token ratios on length-adaptive GAE; one rollout a task is enough",
    settings=SaoSettings,
    build=_build,
    needs=frozenset({"critic"}),
)
