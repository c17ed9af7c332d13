"""Generalised advantage estimation over action tokens."""

from __future__ import annotations

from torch import Tensor

from windage.returns.credit import Credit
from windage.returns.td import Lam, chain, residuals, same
from windage.segments import Segments

__all__ = ["gae"]


def gae(
    *,
    rewards: Tensor,
    values: Tensor,
    segments: Segments,
    bootstrap: Tensor | None = None,
    gamma: float = 1.0,
    lam_actor: Lam = 1.0,
    lam_critic: Lam = 1.0,
) -> Credit:
    """``Â_t = δ_t + γ λ_a Â_{t+}``; critic target ``G_t = V_t +`` the same chain with ``λ_c``.

    Args:
        rewards: [tokens].
        values: critic before each token, [tokens].
        segments: one row an episode; the chain skips whatever lies between two action tokens.
        bootstrap: value after the last token of each row, [rows]: the critic's where truncated, 0 where terminated.
        gamma: discount per action token.
        lam_actor: λ of the advantages: a number, one a row, or a function of the segments (``length_adaptive``).
        lam_critic: λ of the critic's targets.

    >>> import torch
    >>> segments = Segments.from_lengths([2])
    >>> credit = gae(rewards=torch.tensor([0.0, 1.0]), values=torch.tensor([0.5, 0.75]), segments=segments)
    >>> credit.advantages.tolist(), credit.returns.tolist()
    ([0.5, 0.25], [1.0, 1.0])

    CODE: the form of every stack (methods A.5.1).
    """
    delta = residuals(rewards=rewards, values=values, segments=segments, bootstrap=bootstrap, gamma=gamma)
    errors, inherited = chain(residuals=delta, weights=None, segments=segments, gamma=gamma, lam=lam_actor)
    if not same(lam_actor, lam_critic):
        errors, _ = chain(residuals=delta, weights=None, segments=segments, gamma=gamma, lam=lam_critic)
    return Credit(advantages=delta + inherited, returns=values + errors)
