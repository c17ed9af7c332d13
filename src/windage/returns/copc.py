"""Coupled off-policy correction of returns (COPC): residuals weighted by a two-sided clipped ratio."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from windage.errors import ConfigError, explain
from windage.returns.credit import Credit
from windage.returns.td import Lam, chain, residuals, same
from windage.segments import Segments

__all__ = ["copc"]


def copc(
    *,
    rewards: Tensor,
    values: Tensor,
    log_ratio: Tensor,
    segments: Segments,
    bootstrap: Tensor | None = None,
    gamma: float = 1.0,
    lam_actor: Lam = 1.0,
    lam_critic: Lam = 1.0,
    clip: tuple[float, float] = (0.8, 1.2),
    trace: Literal["product", "residual"] = "product",
    actor_adv: Literal["next", "own"] = "next",
) -> Credit:
    """``Â_t = δ_t + γ λ_a κ_{t+} Â_{t+}``; ``E_t = κ_t (δ_t + γ λ_c E_{t+})``; ``G_t = V_t + E_t``.

    ``κ_t = clip(ρ_t, low, high)``. (1, 1) is GAE, (0, 1) V-trace, (0, inf) per-decision importance sampling.

    Args:
        rewards: [tokens].
        values: critic at batch entry before each token, [tokens].
        log_ratio: ``log π_entry - log μ``, [tokens]; never carries gradient.
        segments: one row an episode; ``t+`` is its next action token.
        bootstrap: value after the last token of each row, [rows]: the critic's where truncated, 0 where terminated.
        gamma: discount per action token.
        lam_actor: λ_a: a number, one a row, or a function of the segments (``length_adaptive``).
        lam_critic: λ_c.
        clip: interval of κ, ``0 <= low <= 1 <= high``.
        trace: ``product``: weights multiply along the row; ``residual``: each residual carries only its own.
        actor_adv: ``next``: the token's own ratio is left to the policy channel; ``own``: ``Â_t = E_t``.

    Raises:
        ConfigError: ``clip`` does not hold 1, or an unknown ``trace`` or ``actor_adv``.

    >>> import torch
    >>> credit = copc(
    ...     rewards=torch.tensor([0.0, 1.0]),
    ...     values=torch.tensor([0.5, 0.6]),
    ...     log_ratio=torch.tensor([0.0, -2.0]),
    ...     segments=Segments.from_lengths([2]),
    ... )
    >>> [round(number, 4) for number in credit.advantages.tolist()]  # 0.1 + 0.8 · 0.4 and 0.4
    [0.42, 0.4]
    >>> [round(number, 4) for number in credit.returns.tolist()]  # 0.5 + 0.42 and 0.6 + 0.8 · 0.4
    [0.92, 0.92]

    FOUND in words, DERIVED as equations: COPC (2610.09597; methods A.1.2). See also VACO (2603.01365).
    """
    _check(clip, trace, actor_adv)
    product = trace == "product"
    delta = residuals(rewards=rewards, values=values, segments=segments, bootstrap=bootstrap, gamma=gamma)
    kappa = log_ratio.detach().exp().clamp(*clip).to(delta.dtype)
    errors, inherited = chain(
        residuals=delta, weights=kappa, segments=segments, gamma=gamma, lam=lam_actor, product=product
    )
    advantages = delta + inherited if actor_adv == "next" else errors
    if not same(lam_actor, lam_critic):
        errors, _ = chain(
            residuals=delta, weights=kappa, segments=segments, gamma=gamma, lam=lam_critic, product=product
        )
    return Credit(advantages=advantages, returns=values + errors)


def _check(clip: tuple[float, float], trace: str, actor_adv: str) -> None:
    if not 0 <= clip[0] <= 1 <= clip[1]:
        raise ConfigError(explain("clip does not hold 1", got=clip, expected="0 <= low <= 1 <= high"))
    if trace not in ("product", "residual"):
        raise ConfigError(explain("unknown trace", got=trace, expected="product or residual"))
    if actor_adv not in ("next", "own"):
        raise ConfigError(explain("unknown actor_adv", got=actor_adv, expected="next or own"))
