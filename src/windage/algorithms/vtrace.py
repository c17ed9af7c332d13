"""V-trace actor-critic (IMPALA, 1802.01561)."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pydantic import Field

from windage.algorithms.entry import Entry
from windage.algorithms.settings import CriticSettings, TruncationLimit, Unit

if TYPE_CHECKING:
    from windage.algorithms.algorithm import Algorithm

__all__ = ["VTRACE"]


class VtraceSettings(CriticSettings):
    """One-sided truncation of every weight."""

    rho_max: TruncationLimit = Field(default=1.0, description="Largest weight of a TD residual.")
    c_max: TruncationLimit = Field(default=1.0, description="Largest trace weight.")
    pg_max: TruncationLimit = Field(default=1.0, description="Largest weight of a token in the policy gradient.")
    lam: Unit = Field(default=1.0, description="λ of the trace.")


def _build(settings: VtraceSettings) -> Algorithm:
    from windage.algorithms.algorithm import Algorithm
    from windage.corrections.truncate import truncate
    from windage.objectives.reinforce import reinforce
    from windage.reduce import token_mean
    from windage.returns.vtrace import vtrace

    return Algorithm(
        name=VTRACE.name,
        returns=partial(vtrace, gamma=settings.gamma, lam=settings.lam, rho_max=settings.rho_max, c_max=settings.c_max),
        corrections=partial(truncate, interval=(0.0, settings.pg_max)),
        objective=reinforce,
        reduce=token_mean,
        needs=VTRACE.needs,
        whiten=settings.whiten,
        value_clip=settings.value_clip,
        trace=(0.0, max(settings.c_max, 1.0)),
        settings=settings.model_dump(),
    )


VTRACE = Entry(
    name="vtrace",
    summary="V-trace returns, weights truncated from above",
    settings=VtraceSettings,
    build=_build,
    needs=frozenset({"critic", "entry"}),
)
