"""How much of the returns' variance the critic explains."""

from __future__ import annotations

from torch import Tensor

__all__ = ["explained_variance"]


def explained_variance(*, values: Tensor, returns: Tensor) -> float:
    """``1 - Var(G - V) / Var(G)``; 1 is a perfect critic, 0 a constant one; NaN when the returns are constant."""
    if len(returns) < 2:
        return float("nan")
    total = returns.double().var(correction=0)
    if float(total) < 1e-12:
        return float("nan")
    return float(1 - (returns.double() - values.double()).var(correction=0) / total)
