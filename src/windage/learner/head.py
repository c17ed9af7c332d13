"""Log-probs of chosen tokens through the language-model head, without ever holding all logits."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

__all__ = ["token_logprobs"]

_CHUNK_BYTES = 64 << 20


def token_logprobs(
    *,
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    token_ids: Tensor,
    temperature: float = 1.0,
    soft_cap: float | None = None,
    chunk: int = 0,
    entropy: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """``log softmax(cap(h Wᵀ + b) / temperature)[token]``, in float32, chunk by chunk.

    Arguments:
        hidden: [N, H] trunk output at the positions that predict the tokens
        weight, bias: [V, H], [V] rows of the head, cut to the ids that can be sampled
        token_ids: i64 [N], each below V
        temperature: of the rollouts, so that these are log-probs of the distribution sampled from
        soft_cap: ``cap(x) = c tanh(x / c)`` where the model has one
        chunk: tokens projected at a time; 0 keeps a chunk's float32 logits near 64 MB
        entropy: also return the entropy of each distribution in nats (no gradient)

    Returns: f32 [N], differentiable in ``hidden``, ``weight`` and ``bias``; entropy f32 [N] or None.
    """
    size = chunk or max(1, _CHUNK_BYTES // (4 * weight.shape[0]))
    logprobs, measured = _TokenLogprobs.apply(hidden, weight, bias, token_ids, temperature, soft_cap, size, entropy)
    return logprobs, measured if entropy else None


class _TokenLogprobs(torch.autograd.Function):
    """Keeps inputs and log-normalisers only; the backward pass projects every chunk again."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        token_ids: Tensor,
        temperature: float,
        soft_cap: float | None,
        size: int,
        entropy: bool,
    ) -> tuple[Tensor, Tensor]:
        count = len(token_ids)
        narrow_weight = weight.to(hidden.dtype)
        logprobs = torch.empty(count, dtype=torch.float32, device=hidden.device)
        normaliser = torch.empty_like(logprobs)
        measured = torch.empty_like(logprobs) if entropy else logprobs.new_empty(0)
        for start in range(0, count, size):
            stop = start + size
            scores = _scores(hidden[start:stop], narrow_weight, bias, soft_cap)[0].div_(temperature)
            norm = scores.logsumexp(-1)
            normaliser[start:stop] = norm
            logprobs[start:stop] = scores.gather(1, token_ids[start:stop, None])[:, 0] - norm
            if entropy:
                log_all = scores.sub_(norm[:, None])
                measured[start:stop] = -(log_all.exp() * log_all).sum(-1)
        ctx.save_for_backward(hidden, weight, bias, token_ids, normaliser)
        ctx.settings = (temperature, soft_cap, size)
        ctx.mark_non_differentiable(measured)
        return logprobs, measured

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        hidden, weight, bias, token_ids, normaliser = ctx.saved_tensors
        temperature, soft_cap, size = ctx.settings
        upstream = gradients[0]
        assert upstream is not None
        need_hidden, need_weight, need_bias = ctx.needs_input_grad[:3]
        narrow_weight = weight.to(hidden.dtype)
        grad_hidden = torch.empty_like(hidden) if need_hidden else None
        grad_weight = torch.zeros_like(weight) if need_weight else None
        grad_bias = torch.zeros_like(bias) if need_bias else None
        for start in range(0, len(token_ids), size):
            part = slice(start, start + size)
            scores, slope = _scores(hidden[part], narrow_weight, bias, soft_cap)
            wide = scores.div_(temperature).sub_(normaliser[part, None]).exp_()
            wide.mul_(-upstream[part, None])
            wide.scatter_add_(1, token_ids[part, None], upstream[part, None].to(wide.dtype))
            wide.div_(temperature)
            if slope is not None:
                wide.mul_(slope)
            narrow = wide.to(hidden.dtype)
            if grad_hidden is not None:
                torch.matmul(narrow, narrow_weight, out=grad_hidden[part])
            if grad_weight is not None:
                _accumulate(grad_weight, narrow, hidden[part])
            if grad_bias is not None:
                grad_bias.add_(wide.sum(0))
        return grad_hidden, grad_weight, grad_bias, None, None, None, None, None


def _accumulate(total: Tensor, narrow: Tensor, hidden: Tensor) -> None:
    """``total += narrowᵀ hidden``; the product in the type of its factors, the sum in ``total``'s."""
    if total.dtype == hidden.dtype:
        total.addmm_(narrow.t(), hidden)
    else:
        total.add_(narrow.t() @ hidden)


def _scores(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, soft_cap: float | None
) -> tuple[Tensor, Tensor | None]:
    """float32 scores of a chunk, [n, V], and the soft cap's slope where there is one."""
    cut = None if bias is None else bias.to(hidden.dtype)
    scores = F.linear(hidden, weight, cut).float()
    if soft_cap is None:
        return scores, None
    bent = torch.tanh_(scores.div_(soft_cap))
    return bent * soft_cap, 1.0 - bent.square()
