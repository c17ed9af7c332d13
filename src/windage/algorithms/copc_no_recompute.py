"""Ablation of COPC: the policy update is masked, the returns stay those of the old policy."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from windage.algorithms.entry import Entry
from windage.algorithms.settings import Band, CriticSettings, Lambda

if TYPE_CHECKING:
    from windage.algorithms.algorithm import Algorithm

__all__ = ["COPC_NO_RECOMPUTE"]


class CopcNoRecomputeSettings(CriticSettings):
    """COPC with ``clip = (1, 1)``: plain GAE returns."""

    band: Band = Field(default=(0.5, 2.0), description="Ratios outside do not count in the policy update.")
    lam_actor: Lambda = Field(default=1.0, description="λ of the advantages, or {alpha: a} for a length-adaptive one.")
    lam_critic: Lambda = Field(default=1.0, description="λ of the critic's targets.")


def _build(settings: CopcNoRecomputeSettings) -> Algorithm:
    from windage.algorithms.algorithm import Algorithm
    from windage.algorithms.lam import lam_of
    from windage.corrections.mask import mask
    from windage.objectives.reinforce import reinforce
    from windage.reduce import token_mean
    from windage.returns.gae import gae

    return Algorithm(
        name=COPC_NO_RECOMPUTE.name,
        returns=partial(
            gae,
            gamma=settings.gamma,
            lam_actor=lam_of(settings.lam_actor),
            lam_critic=lam_of(settings.lam_critic),
        ),
        corrections=partial(mask, band=settings.band),
        objective=reinforce,
        reduce=token_mean,
        needs=COPC_NO_RECOMPUTE.needs,
        whiten=settings.whiten,
        value_clip=settings.value_clip,
        settings=settings.model_dump(),
    )


COPC_NO_RECOMPUTE = Entry(
    name="copc_no_recompute",
    summary="Ablation: COPC's mask on plain GAE returns",
    settings=CopcNoRecomputeSettings,
    build=_build,
    needs=frozenset({"critic"}),
)
