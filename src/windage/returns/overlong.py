"""Soft penalty for answers that run into the length limit."""

from __future__ import annotations

from torch import Tensor

__all__ = ["overlong"]


def overlong(*, lengths: Tensor, limit: int, buffer: int) -> Tensor:
    """``clip((limit - buffer - L) / buffer, -1, 0)``: 0 up to ``limit - buffer`` tokens, -1 from ``limit`` on.

    RECALLED: DAPO (2503.14476).

    >>> import torch
    >>> overlong(lengths=torch.tensor([80, 90, 200]), limit=100, buffer=20).tolist()
    [0.0, -0.5, -1.0]
    """
    return ((limit - buffer - lengths.float()) / buffer).clamp(-1.0, 0.0)
