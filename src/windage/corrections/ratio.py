"""The only function that forms log-ratios."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["LIMIT", "Ratio", "ratio"]

LIMIT = 20.0
"""Log-ratios are clamped to ±LIMIT before ``exp``; how many were is in :attr:`Ratio.clamped`."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Ratio:
    """Log-ratio of two policies at each token.

    ``log``      f32 [tokens]   clamped; carries the gradient of ``logprobs``
    ``usable``   bool [tokens]  False where the anchor's log-prob is not finite; ``log`` is 0 there
    ``clamped``  bool [tokens]  True where the clamp changed the value
    """

    log: Tensor
    usable: Tensor
    clamped: Tensor

    @property
    def value(self) -> Tensor:
        """``exp(log)``."""
        return self.log.exp()


def ratio(*, logprobs: Tensor, anchor_logprobs: Tensor, limit: float = LIMIT) -> Ratio:
    """``log ρ = clamp(logprobs - anchor_logprobs, ±limit)`` in float32.

    The anchor never carries gradient. A NaN in ``logprobs`` stays NaN: it is the learner's fault and must be seen.

    Args:
        logprobs: numerator, [tokens], natural logarithm.
        anchor_logprobs: denominator, [tokens]; -inf, inf or NaN mark a token to leave out.
        limit: largest absolute log-ratio.

    CODE: every stack upcasts before subtracting and clamps before ``exp`` (methods 0.2).

    >>> ratio(logprobs=torch.tensor([-1.0, -90.0]), anchor_logprobs=torch.tensor([-1.5, -1.0])).log.tolist()
    [0.5, -20.0]
    """
    anchor = anchor_logprobs.detach().float()
    usable = torch.isfinite(anchor)
    log = torch.where(usable, logprobs.float() - anchor, 0.0)
    return Ratio(log=log.clamp(-limit, limit), usable=usable, clamped=log.detach().abs() > limit)
