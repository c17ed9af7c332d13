"""The plain policy gradient."""

from __future__ import annotations

from torch import Tensor

__all__ = ["reinforce"]


def reinforce(*, logprobs: Tensor, advantages: Tensor) -> Tensor:
    """``ℓ_t = - sg(Â_t) · log π(a_t)``, f32 [tokens]; multiply by a correction's weight for off-policy tokens.

    >>> import torch
    >>> reinforce(logprobs=torch.tensor([-0.5]), advantages=torch.tensor([2.0])).tolist()
    [1.0]
    """
    return -advantages.detach() * logprobs.float()
