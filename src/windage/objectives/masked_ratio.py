"""Policy gradient with the token's ratio as its weight, and nothing outside a band."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from windage.corrections.ratio import ratio

__all__ = ["masked_ratio"]


def masked_ratio(
    *, logprobs: Tensor, behavior_logprobs: Tensor, advantages: Tensor, band: tuple[float, float] = (0.5, 2.0)
) -> Tensor:
    """``ℓ_t = - sg(f(ρ_t) Â_t) · log π(a_t)`` with ``f(ρ) = ρ`` inside the open ``band`` and 0 outside, f32 [tokens].

    A token outside the band, or with a behaviour log-prob that is not finite, is selected away: whatever its log-prob
    and advantage hold reaches neither value nor gradient.

    Args:
        logprobs: current policy, [tokens], carries the gradient.
        behavior_logprobs: engine, [tokens].
        advantages: [tokens], detached here.
        band: interval of ratios that count.

    >>> loss = masked_ratio(
    ...     logprobs=torch.tensor([-1.0, -1.0]),
    ...     behavior_logprobs=torch.tensor([-1.0, -4.0]),
    ...     advantages=torch.tensor([2.0, 2.0]),
    ... )
    >>> loss.tolist()  # the second ratio is e^3
    [2.0, -0.0]

    SECONDARY: DIS of SAO (2607.07508); COPC's policy channel (2610.09597, FOUND in words).
    """
    found = ratio(logprobs=logprobs.detach(), anchor_logprobs=behavior_logprobs)
    low, high = (math.log(bound) if bound > 0 else -math.inf for bound in band)
    keep = found.usable & ~((found.log <= low) | (found.log >= high))
    weight = torch.where(keep, found.value * advantages.detach(), 0.0)
    return -weight * torch.where(keep, logprobs.float(), 0.0)
