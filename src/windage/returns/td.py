"""TD residuals and the weighted chain of them: what all critic-based estimators share."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from windage.segments import Segments

__all__ = ["Lam", "chain", "residuals", "same"]

Lam = float | Tensor | Callable[..., Tensor]
"""λ: a number, one a row [rows], or a function ``(*, segments) -> [rows]`` such as ``length_adaptive``."""


def residuals(*, rewards: Tensor, values: Tensor, segments: Segments, bootstrap: Tensor | None, gamma: float) -> Tensor:
    """``δ_t = r_t + γ V_{t+} - V_t`` over action tokens; ``V_{t+}`` after a row's end is ``bootstrap`` [rows] or 0."""
    return rewards + gamma * segments.next_value(values, bootstrap) - values


def chain(
    *,
    residuals: Tensor,
    weights: Tensor | None,
    segments: Segments,
    gamma: float,
    lam: Lam,
    product: bool = True,
) -> tuple[Tensor, Tensor]:
    """``E_t = κ_t (δ_t + γ λ E_{t+})``, and what a token inherits from the next one: ``γ λ E_{t+}``.

    Without ``product`` only the residual carries the weight: ``E_t = κ_t δ_t + γ λ E_{t+}``.

    Args:
        residuals: δ, [tokens].
        weights: κ, [tokens]; None: all 1.
        segments: the rows.
        gamma: discount per action token.
        lam: λ.
        product: the weights multiply along the row.
    """
    lam = lam(segments=segments) if callable(lam) else lam
    decay = gamma * (segments.expand(lam.to(residuals)) if isinstance(lam, Tensor) else residuals.new_tensor(lam))
    along = decay if weights is None or not product else decay * weights
    errors = segments.reverse_scan(along.expand_as(residuals), residuals if weights is None else weights * residuals)
    return errors, decay * segments.next_value(errors)


def same(one: Lam, other: Lam) -> bool:
    """True where two λ are surely equal, so that one chain serves both."""
    return one is other or (isinstance(one, float | int) and isinstance(other, float | int) and one == other)
