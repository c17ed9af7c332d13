"""Optimizer: AdamW with warm-up, schedule, clipping, and the refusal of non-finite gradients."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal

import torch
from torch import Tensor, nn

__all__ = ["Optimizer", "learning_rate"]

Schedule = Literal["constant", "linear", "cosine"]


def learning_rate(update: int, *, peak: float, warmup: int, schedule: Schedule, total: int | None) -> float:
    """Rate of update 0, 1, 2, …: linear warm-up to ``peak``, then constant, linear or cosine down to 0 at ``total``.

    >>> [learning_rate(u, peak=1.0, warmup=2, schedule="linear", total=6) for u in (0, 1, 2, 4, 6)]
    [0.5, 1.0, 1.0, 0.5, 0.0]
    """
    if update < warmup:
        return peak * (update + 1) / warmup
    if schedule == "constant" or total is None:
        return peak
    done = min(1.0, (update - warmup) / max(1, total - warmup))
    return peak * (1.0 - done if schedule == "linear" else 0.5 * (1.0 + math.cos(math.pi * done)))


class Optimizer:
    """AdamW over ``named`` parameters; weight decay on matrices only. ``updates`` counts the steps taken."""

    def __init__(
        self,
        named: Iterable[tuple[str, nn.Parameter]],
        *,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        max_grad_norm: float = 1.0,
        warmup: int = 0,
        schedule: Schedule = "constant",
        total: int | None = None,
    ) -> None:
        parameters = [parameter for _, parameter in named]
        matrices = [parameter for parameter in parameters if parameter.ndim >= 2]
        rest = [parameter for parameter in parameters if parameter.ndim < 2]
        groups = [{"params": matrices, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]
        self.parameters = parameters
        self.updates = 0
        self._rate = {"peak": lr, "warmup": warmup, "schedule": schedule, "total": total}
        self._max_norm = max_grad_norm
        self._adam = torch.optim.AdamW(
            [group for group in groups if group["params"]], lr=lr, betas=betas, eps=eps, fused=True
        )

    @property
    def lr(self) -> float:
        """Rate of the next update."""
        return learning_rate(self.updates, **self._rate)  # pyright: ignore[reportArgumentType]

    def grad_norm(self) -> Tensor:
        """Global norm before clipping; not finite when any gradient is not."""
        grads = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        return torch.nn.utils.get_total_norm(grads) if grads else torch.zeros(())

    def step(self, norm: Tensor) -> None:
        """Clip to the maximum, given the norm, and update. The gradients are gone afterwards."""
        torch.nn.utils.clip_grads_with_norm_(self.parameters, self._max_norm, norm)
        for group in self._adam.param_groups:
            group["lr"] = self.lr
        self._adam.step()
        self.updates += 1
        self.discard()

    def discard(self) -> None:
        """Drop the gradients; nothing moves."""
        self._adam.zero_grad(set_to_none=True)

    def state(self) -> dict[str, Any]:
        """Everything a checkpoint needs."""
        return {"adam": self._adam.state_dict(), "updates": self.updates}

    def restore(self, state: dict[str, Any]) -> None:
        """Continue exactly where :meth:`state` was taken."""
        self._adam.load_state_dict(state["adam"])
        self.updates = int(state["updates"])
