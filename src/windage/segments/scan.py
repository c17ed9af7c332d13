"""The one recurrence, differentiable: a linear scan inside each row, backwards or forwards."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from windage.errors import RecordError, explain

__all__ = ["forward_scan", "reverse_scan"]


def reverse_scan(decay: Tensor, increments: Tensor, offsets: Tensor) -> Tensor:
    """``x_t = b_t + a_t · x_{t+1}`` inside each row; ``x`` is 0 after a row's end, so its last ``a`` is never read.

    Accumulated in float64 whatever the inputs' type. The gradient is exact: a forward scan.

    Args:
        decay: ``a``, [tokens].
        increments: ``b``, [tokens].
        offsets: i64 [rows + 1], first token of each row.

    Raises:
        RecordError: shapes disagree.

    >>> reverse_scan(torch.tensor([0.5, 9.0, 0.5]), torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0, 2, 3])).tolist()
    [2.0, 2.0, 3.0]
    """
    return _scan(decay, increments, offsets, backwards=True)


def forward_scan(decay: Tensor, increments: Tensor, offsets: Tensor) -> Tensor:
    """``y_t = b_t + a_t · y_{t-1}`` inside each row; ``y`` is 0 before a row's start. Otherwise as reverse_scan."""
    return _scan(decay, increments, offsets, backwards=False)


def _scan(decay: Tensor, increments: Tensor, offsets: Tensor, *, backwards: bool) -> Tensor:
    if decay.shape != increments.shape or decay.ndim != 1:
        raise RecordError(
            explain(
                "scan over arrays of unequal shape",
                got=(tuple(decay.shape), tuple(increments.shape)),
                expected="two 1-D arrays of equal length",
            )
        )
    kind = torch.promote_types(decay.dtype, increments.dtype)
    kind = kind if kind in (torch.float32, torch.float64) else torch.float32
    return _Scan.apply(decay.to(kind), increments.to(kind), offsets, backwards)  # pyright: ignore[reportReturnType]


class _Scan(torch.autograd.Function):
    """Scan in one direction; its gradient is the scan in the other one with the decay shifted by one token."""

    @staticmethod
    def forward(ctx: Any, decay: Tensor, increments: Tensor, offsets: Tensor, backwards: bool) -> Tensor:
        found = _run(decay, increments, offsets, backwards)
        ctx.save_for_backward(decay, found, offsets)
        ctx.backwards = backwards
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor, None, None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        decay, found, offsets = ctx.saved_tensors
        step = 1 if ctx.backwards else -1
        total = _run(decay.roll(step), gradient.to(decay.dtype), offsets, not ctx.backwards)
        if not ctx.needs_input_grad[0]:
            return None, total, None, None
        neighbour = found.roll(-step)
        edge = offsets[1:] - 1 if ctx.backwards else offsets[:-1]
        neighbour = neighbour.index_fill(0, edge[offsets[1:] > offsets[:-1]], 0.0)
        return total * neighbour, total, None, None


def _run(decay: Tensor, increments: Tensor, offsets: Tensor, backwards: bool) -> Tensor:
    decay, increments = decay.detach().contiguous(), increments.detach().contiguous()
    if increments.is_cuda:
        from windage.segments.scan_cuda import scan_cuda

        return scan_cuda(decay, increments, offsets, backwards=backwards)
    if increments.device.type != "cpu":
        return _run(decay.cpu(), increments.cpu(), offsets.cpu(), backwards).to(increments.device)
    from windage.segments.scan_cpu import scan_cpu

    found = torch.empty_like(increments)
    scan_cpu(decay.numpy(), increments.numpy(), offsets.cpu().numpy(), found.numpy(), backwards)
    return found
