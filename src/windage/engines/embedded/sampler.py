"""Draw one token a row from its processed distribution, and say with which log-prob."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Draw", "Knobs", "sample"]

_BLOCK = 256  # words per block of the two-level inverse CDF
_FIRST_LOOK = 1024  # candidates sorted first for top-p; rows whose nucleus is larger are sorted in full


@dataclass(frozen=True, slots=True, kw_only=True)
class Knobs:
    """Sampling parameters of each row, on the logits' device; the flags spare work no row asks for.

    ``temperature`` f32 [rows] (0 = greedy) · ``top_k`` int64 [rows] (0 = off) · ``top_p`` f64 [rows] (1 = off)
    """

    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    any_greedy: bool
    any_truncated: bool
    any_entropy: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Sampled ids int64 [rows], their log-probs f32 [rows], and the distribution's entropy (nats) when asked for."""

    ids: Tensor
    logprobs: Tensor
    entropy: Tensor | None


def sample(*, logits: Tensor, uniform: Tensor, knobs: Knobs) -> Draw:
    """Temperature, then top-k, then top-p, renormalised; draw by inverse CDF; fp32 log-softmax.

        x = logits / T;  keep the k largest;  of those the smallest head with mass >= p;
        log π(a) = x_a − log Σ_kept exp x;  a = first kept index whose cumulative probability exceeds u

    Arguments:
        logits: [rows, words], any float type
        uniform: f64 [rows], in [0, 1)
        knobs: parameters per row

    A greedy row takes the largest logit (the lowest id among equals) with log-prob and entropy 0: that *is* the
    distribution it was drawn from. A row whose logits hold a NaN gets log-prob NaN, which the learner drops and counts.
    """
    scaled = logits.float() / torch.where(knobs.temperature > 0, knobs.temperature, 1.0)[:, None]
    draw = _full(scaled, uniform, entropy=knobs.any_entropy)
    if knobs.any_truncated:
        rows = ((knobs.top_k > 0) | (knobs.top_p < 1.0)).nonzero()[:, 0]
        part = _truncated(scaled[rows], uniform[rows], knobs.top_k[rows], knobs.top_p[rows])
        draw.ids[rows], draw.logprobs[rows] = part.ids, part.logprobs
        if draw.entropy is not None and part.entropy is not None:
            draw.entropy[rows] = part.entropy
    if knobs.any_greedy:
        _overwrite_greedy(draw, scaled, knobs.temperature)
    return draw


def _overwrite_greedy(draw: Draw, scaled: Tensor, temperature: Tensor) -> None:
    rows = (temperature <= 0).nonzero()[:, 0]
    best = scaled[rows].argmax(-1)
    draw.ids[rows] = best
    draw.logprobs[rows] = scaled[rows, best] - scaled[rows, best]  # 0, or NaN where the logits are
    if draw.entropy is not None:
        draw.entropy[rows] = 0.0


def _full(scaled: Tensor, uniform: Tensor, *, entropy: bool) -> Draw:
    peak = scaled.amax(-1, keepdim=True)
    shifted = scaled - peak
    mass = shifted.exp()
    ids, total = _invert(mass, uniform)
    log_total = total.log().float()
    logprobs = shifted.gather(1, ids[:, None])[:, 0] - log_total
    spread = None
    if entropy:
        spread = log_total - (mass * shifted.clamp_min(-1e30)).sum(-1) / total.float()
    return Draw(ids=ids, logprobs=logprobs, entropy=spread)


def _invert(mass: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """First index whose cumulative mass exceeds ``uniform`` times the total; two levels, so only one pass is long."""
    rows, words = mass.shape
    padded = torch.nn.functional.pad(mass, (0, -words % _BLOCK)).view(rows, -1, _BLOCK)
    blocks = padded.sum(-1, dtype=torch.float64).cumsum(-1)
    total = blocks[:, -1]
    target = uniform * total
    block = (blocks <= target[:, None]).sum(-1).clamp_max(blocks.shape[1] - 1)
    before = torch.where(block > 0, blocks.gather(1, (block - 1).clamp_min(0)[:, None])[:, 0], 0.0)
    inside = padded.gather(1, block[:, None, None].expand(-1, 1, _BLOCK))[:, 0].double()
    return block * _BLOCK + _first_above(inside, target - before), total


def _first_above(mass: Tensor, target: Tensor) -> Tensor:
    """First index whose cumulative mass exceeds the target, never one without mass (rounding at the far end)."""
    index = (mass.cumsum(-1) <= target[:, None]).sum(-1)
    places = torch.arange(mass.shape[-1], device=mass.device)
    last = torch.where(mass > 0, places, 0).amax(-1)
    return torch.minimum(index, last)


def _truncated(scaled: Tensor, uniform: Tensor, top_k: Tensor, top_p: Tensor) -> Draw:
    words = scaled.shape[-1]
    limit = torch.where(top_k > 0, top_k, words).clamp_max(words)
    needed = int(torch.where(top_p < 1.0, limit.clamp_max(_FIRST_LOOK), limit).max())
    log_total = torch.logsumexp(scaled.double(), -1)
    values, order = scaled.topk(min(needed, words), dim=-1)
    keep = _nucleus(values, limit, top_p, log_total, words)
    if keep is None:
        values, order = scaled.sort(dim=-1, descending=True, stable=True)
        keep = _nucleus(values, limit, top_p, log_total, words)
        assert keep is not None
    kept = torch.where(keep, values, -torch.inf)
    logp = kept - torch.logsumexp(kept, -1, keepdim=True)
    place = _first_above(logp.double().exp(), uniform)
    entropy = -torch.where(keep, logp.exp() * logp, 0.0).sum(-1)
    return Draw(
        ids=order.gather(1, place[:, None])[:, 0],
        logprobs=logp.gather(1, place[:, None])[:, 0],
        entropy=entropy,
    )


def _nucleus(values: Tensor, limit: Tensor, top_p: Tensor, log_total: Tensor, words: int) -> Tensor | None:
    """Which sorted candidates stay; None when the candidates at hand do not settle it."""
    count = values.shape[-1]
    inside = torch.arange(count, device=values.device) < limit[:, None]
    mass = torch.where(inside, values.double(), -torch.inf)
    complete = limit <= count  # every candidate of the row is at hand: normalise over them
    norm = torch.where(complete, torch.logsumexp(mass, -1), log_total)
    probabilities = (mass - norm[:, None]).exp()
    reached = probabilities.cumsum(-1)
    settled = complete | ((limit == words) & (reached[:, -1] >= top_p))
    if not bool(settled.all()):
        return None
    first = torch.arange(count, device=values.device) == 0
    return inside & ((reached - probabilities < top_p[:, None]) | first)
