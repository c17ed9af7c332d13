"""V-trace over action tokens."""

from __future__ import annotations

from torch import Tensor

from windage.returns.credit import Credit
from windage.returns.td import residuals
from windage.segments import Segments

__all__ = ["vtrace"]


def vtrace(
    *,
    rewards: Tensor,
    values: Tensor,
    log_ratio: Tensor,
    segments: Segments,
    bootstrap: Tensor | None = None,
    gamma: float = 1.0,
    lam: float = 1.0,
    rho_max: float = 1.0,
    c_max: float = 1.0,
) -> Credit:
    """``e_t = min(ρ̄, ρ_t) δ_t + γ λ min(c̄, ρ_t) e_{t+}``; ``G_t = V_t + e_t``; ``Â_t = δ_t + γ λ e_{t+}``.

    ``Â_t = q_t - V_t`` with ``q_t = r_t + γ (λ G_{t+} + (1-λ) V_{t+})``; the weight ``min(ρ̄_pg, ρ_t)`` of the policy
    gradient is a correction of its own (``truncate``), formed anew at every update.

    Args:
        rewards: [tokens].
        values: critic before each token, [tokens].
        log_ratio: ``log π_entry - log μ``, [tokens], detached.
        segments: one row an episode.
        bootstrap: value after the last token of each row, [rows], or None for 0.
        gamma: discount per action token.
        lam: λ.
        rho_max: ρ̄, fixes which policy's value is learnt.
        c_max: c̄, how far corrections reach.

    >>> import torch
    >>> credit = vtrace(
    ...     rewards=torch.tensor([0.0, 1.0]),
    ...     values=torch.tensor([0.5, 0.5]),
    ...     log_ratio=torch.tensor([3.0, 0.0]),
    ...     segments=Segments.from_lengths([2]),
    ... )
    >>> credit.advantages.tolist(), credit.returns.tolist()
    ([0.5, 0.5], [1.0, 1.0])

    FOUND: IMPALA (1802.01561).
    """
    delta = residuals(rewards=rewards, values=values, segments=segments, bootstrap=bootstrap, gamma=gamma)
    rho = log_ratio.detach().exp()
    errors = segments.reverse_scan(gamma * lam * rho.clamp(max=c_max), rho.clamp(max=rho_max) * delta)
    return Credit(advantages=delta + gamma * lam * segments.next_value(errors), returns=values + errors)
