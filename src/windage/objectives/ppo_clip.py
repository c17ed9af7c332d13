"""Clipped surrogate of PPO."""

from __future__ import annotations

import torch
from torch import Tensor

from windage.corrections.ratio import ratio

__all__ = ["ppo_clip"]


def ppo_clip(
    *,
    logprobs: Tensor,
    anchor_logprobs: Tensor,
    advantages: Tensor,
    clip: tuple[float, float] = (0.2, 0.2),
    dual_clip: float | None = None,
) -> Tensor:
    """``ℓ_t = -S_t``, ``S_t = min(r_t Â_t, clip(r_t, 1 - low, 1 + high) Â_t)``, f32 [tokens].

    With ``dual_clip``, tokens of negative advantage use ``max(S_t, dual_clip · Â_t)``.

    Args:
        logprobs: current policy, [tokens], carries the gradient.
        anchor_logprobs: what the ratio is taken against: behaviour (asynchronous) or entry, [tokens]. A token whose
            anchor is not finite gets 0.
        advantages: [tokens], detached here.
        clip: how far below and above 1 the ratio may move.
        dual_clip: cap above 1 on the ratio of tokens with negative advantage.

    >>> loss = ppo_clip(
    ...     logprobs=torch.tensor([0.0, 0.0]).log_softmax(0),
    ...     anchor_logprobs=torch.tensor([0.25, 0.5]).log(),
    ...     advantages=torch.tensor([1.0, 1.0]),
    ... )
    >>> [round(number, 4) for number in loss.tolist()]  # ratios 2, cut to 1.2, and 1
    [-1.2, -1.0]

    CODE: PPO and DAPO's unequal bounds (2503.14476); dual clip as in verl and slime.
    """
    found = ratio(logprobs=torch.where(torch.isfinite(anchor_logprobs), logprobs, 0.0), anchor_logprobs=anchor_logprobs)
    advantages = torch.where(found.usable, advantages.detach(), 0.0)
    free = found.value
    surrogate = torch.minimum(free * advantages, free.clamp(1 - clip[0], 1 + clip[1]) * advantages)
    if dual_clip is not None:
        surrogate = torch.where(advantages < 0, torch.maximum(surrogate, dual_clip * advantages), surrogate)
    return -surrogate
