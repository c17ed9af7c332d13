"""Critics: a head on the policy's last hidden state, or a model of its own. Values are float32."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from windage.learner.critic_config import CriticConfig
from windage.learner.model import Policy, open_model
from windage.learner.packed import Packed

__all__ = ["SeparateCritic", "ValueHead", "build_critic"]


class ValueHead(nn.Module):
    """``V(s) = w · gelu(A h + a) + b`` (or linear in h); starts at 0 everywhere, so the first residuals are rewards."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.inner = nn.Linear(width, hidden) if hidden else None
        self.outer = nn.Linear(hidden or width, 1)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """[N, H] to f32 [N]."""
        hidden = hidden.float()
        if self.inner is not None:
            hidden = nn.functional.gelu(self.inner(hidden))
        return self.outer(hidden)[:, 0]


class SeparateCritic(nn.Module):
    """A trunk of its own and a value head."""

    def __init__(self, hf: Any, head: ValueHead) -> None:
        super().__init__()
        self.trunk: nn.Module = getattr(hf, hf.base_model_prefix)
        self.head = head

    def hidden(self, packed: Packed) -> Tensor:
        """Trunk output, [T, H]. Call inside :func:`~windage.learner.attention.rows_of` and autocast."""
        out = self.trunk(input_ids=packed.token_ids[None], position_ids=packed.positions[None], use_cache=False)
        return out.last_hidden_state[0]


def build_critic(
    config: CriticConfig, policy: Policy, *, folder: Path, seed: int, trust: bool
) -> ValueHead | SeparateCritic:
    """The configured critic on the policy's device, seeded.

    Raises:
        DataError: the separate critic's model cannot be read.
    """
    hf = open_model(Path(config.path) if config.path else folder, trust=trust) if config.kind == "separate" else None
    width = policy.width if hf is None else int(hf.config.get_text_config().hidden_size)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        default = width if hf is None else 0
        head = ValueHead(width, default if config.hidden < 0 else config.hidden)
    critic = head if hf is None else SeparateCritic(hf, head)
    return critic.to(policy.device)
