"""Start-up check: this model's packed forward pass says what the model itself says, row by row."""

from __future__ import annotations

import numpy as np
import torch

from windage.errors import ConfigError, explain
from windage.learner.attention import ATTENTION_NAME, rows_of
from windage.learner.forward import hidden_states
from windage.learner.model import Policy
from windage.learner.packed import pack

__all__ = ["check_packing"]

_TOLERANCE = {torch.float32: 2e-3, torch.bfloat16: 0.15}


def check_packing(policy: Policy) -> None:
    """Compare two packed rows with plain forward passes of each alone (trap 49).

    Raises:
        ConfigError: they disagree: a model whose layers look across rows, or scale logits in a way the head does not.
    """
    random = np.random.default_rng(0)
    rows = [random.integers(0, policy.limit, length) for length in (11, 7)]
    chosen = [random.integers(0, policy.limit, len(row)) for row in rows]
    packed = pack(rows, device=policy.device)
    targets = torch.tensor(np.concatenate(chosen), device=policy.device)
    with torch.no_grad(), rows_of(packed):
        got, _ = policy.logprobs(hidden_states(policy, packed), targets, temperature=1.0)
    expected = _plain(policy, rows, targets)
    gap = float((got - expected).abs().mean())
    if not gap <= _TOLERANCE[policy.compute]:
        raise ConfigError(
            explain(
                f"{type(policy.hf).__name__} cannot be trained on packed rows",
                got=f"mean log-prob difference {gap:.2g} from the model's own forward pass",
                expected=f"<= {_TOLERANCE[policy.compute]}",
                do="choose a model with ordinary causal attention in every layer",
            )
        )


def _plain(policy: Policy, rows: list[np.ndarray], targets: torch.Tensor) -> torch.Tensor:
    """The modules' own log-probs of ``targets``, each row alone, eager attention."""
    hf = policy.hf
    found: list[torch.Tensor] = []
    hf.set_attn_implementation("eager")
    with torch.no_grad():
        for row in rows:
            logits = hf(input_ids=torch.tensor(row, device=policy.device)[None], use_cache=False).logits[0]
            found.append(torch.log_softmax(logits[:, : policy.limit].float(), -1))
    hf.set_attn_implementation(ATTENTION_NAME)
    return torch.cat(found).gather(1, targets[:, None])[:, 0]
