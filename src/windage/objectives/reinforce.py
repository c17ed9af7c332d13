"""The plain policy gradient."""

from __future__ import annotations

from torch import Tensor

__all__ = ["reinforce"]


def reinforce(*, logprobs: Tensor, advantages: Tensor) -> Tensor:
    """``ℓ_t = - sg(Â_t) · log π(a_t)``, f32 [tokens]."""
    return -advantages.detach() * logprobs.float()
