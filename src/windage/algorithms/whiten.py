"""Whitening over the action tokens of the global batch."""

from __future__ import annotations

from torch import Tensor

__all__ = ["whiten"]


def whiten(advantages: Tensor) -> Tensor:
    """``(Â - mean) / sqrt(var + 1e-8)`` in float64; unchanged when the standard deviation is below 1e-6.

    DERIVED for COPC (methods A.1.5 rule 4): after the returns, over the whole batch, never per shard.
    """
    wide = advantages.double()
    if len(wide) < 2:
        return advantages
    variance = wide.var(correction=0)
    if float(variance) < 1e-12:
        return advantages
    return ((wide - wide.mean()) / (variance + 1e-8).sqrt()).to(advantages.dtype)
