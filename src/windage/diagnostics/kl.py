"""Three estimates of the KL divergence from samples."""

from __future__ import annotations

from torch import Tensor

__all__ = ["kl"]


def kl(*, log_ratio: Tensor) -> dict[str, float]:
    """KL(μ ‖ π) from tokens sampled by μ, with ``d = log π - log μ``, averaged over tokens; NaN without tokens.

    ``k1 = -d``: unbiased, may be negative. ``k2 = d² / 2``: low variance, biased. ``k3 = e^d - 1 - d``: unbiased,
    never negative. These are values to report, not losses (methods A.5.9: k1 as a loss has no such gradient).

    Args:
        log_ratio: ``d``, [tokens].
    """
    gap = log_ratio.double()
    return {
        "k1": float((-gap).mean()),
        "k2": float((0.5 * gap.square()).mean()),
        "k3": float((gap.expm1() - gap).mean()),
    }
