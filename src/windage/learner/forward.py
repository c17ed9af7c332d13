"""One packed forward pass: hidden states of the trunk at the positions that matter."""

from __future__ import annotations

import torch
from torch import Tensor

from windage.learner.model import Policy
from windage.learner.packed import Packed

__all__ = ["autocast", "hidden_states", "places"]


def hidden_states(policy: Policy, packed: Packed) -> Tensor:
    """Trunk output before the head, [T, H]. Call inside :func:`~windage.learner.attention.rows_of`."""
    with autocast(policy):
        out = policy.trunk(input_ids=packed.token_ids[None], position_ids=packed.positions[None], use_cache=False)
    return out.last_hidden_state[0]


def autocast(policy: Policy) -> torch.autocast:
    """Matrix products in bf16 where the policy asks for it; weights and reductions stay fp32."""
    return torch.autocast(policy.device.type, dtype=torch.bfloat16, enabled=policy.compute is torch.bfloat16)


def places(packed: Packed, *, row: Tensor, inside: Tensor) -> Tensor:
    """Packed position of token ``inside`` (its index in its own row) of row ``row``; any shape, i64."""
    return packed.offsets[row] + inside
