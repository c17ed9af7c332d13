"""What an algorithm says about one batch: ratios, masks, traces, critic, staleness."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from windage import diagnostics
from windage.algorithms.chains import Chains
from windage.corrections.ratio import ratio
from windage.corrections.weight import Weight
from windage.returns.credit import Credit
from windage.tokens import TokenBatch

if TYPE_CHECKING:
    from windage.algorithms.algorithm import Algorithm

__all__ = ["report"]


def report(
    algorithm: Algorithm,
    batch: TokenBatch,
    *,
    entry_logprobs: Tensor,
    credit: Credit,
    values: Tensor | None,
    logprobs: Tensor | None,
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Shares are over the action tokens of the batch, before any mask. Histograms are counts, bin by bin."""
    histograms = {"staleness": diagnostics.staleness_histogram(staleness=batch.staleness)}
    if not batch.segments.tokens:
        return {}, histograms
    entry = ratio(logprobs=entry_logprobs, anchor_logprobs=batch.behavior_logprobs)
    numbers = _ratios(batch, entry.log, entry.clamped)
    latest = entry_logprobs if logprobs is None else logprobs
    numbers |= _policy_channel(algorithm, batch, latest, entry_logprobs, credit)
    if values is not None and credit.returns is not None:
        numbers |= _critic(algorithm, batch, values, credit.returns)
    if algorithm.trace is not None:
        found, histograms["log_trace"] = _traces(batch, entry.log, algorithm.trace)
        numbers |= found
    return numbers, histograms


def _ratios(batch: TokenBatch, log_ratio: Tensor, clamped: Tensor) -> dict[str, float]:
    low, high = diagnostics.outside(log_ratio=log_ratio)
    estimates = diagnostics.kl(log_ratio=log_ratio)
    spread = diagnostics.mismatch(log_ratio=log_ratio, staleness=batch.staleness, segments=batch.segments)
    return {
        "ess": diagnostics.ess(log_weights=log_ratio),
        "kl": estimates["k3"],
        **{f"kl_{name}": value for name, value in estimates.items()},
        "ratio_below_half": low,
        "ratio_above_two": high,
        "ratio_clamped": _share(clamped),
        "tokens_dropped": float(batch.dropped),
        **{f"mismatch_{name}": value for name, value in spread.items()},
    }


def _policy_channel(
    algorithm: Algorithm, batch: TokenBatch, logprobs: Tensor, entry_logprobs: Tensor, credit: Credit
) -> dict[str, float]:
    """What the policy's own interval did at the last update."""
    behavior = batch.behavior_logprobs
    latest = ratio(logprobs=logprobs, anchor_logprobs=behavior).log
    numbers = {"advantage_zero": _share(credit.advantages == 0)}
    weight = algorithm.weight(batch, logprobs=logprobs, entry_logprobs=entry_logprobs)
    if weight is not None:
        numbers |= _masked(weight, latest, credit.advantages)
    elif "clip" in algorithm.settings:
        anchor = entry_logprobs if algorithm.anchor == "entry" else behavior
        low, high = algorithm.settings["clip"]
        moved = ratio(logprobs=logprobs, anchor_logprobs=anchor).value
        numbers["clipped_below"] = _share((moved < 1 - low) & (credit.advantages < 0))
        numbers["clipped_above"] = _share((moved > 1 + high) & (credit.advantages > 0))
    return numbers


def _masked(weight: Weight, log_ratio: Tensor, advantages: Tensor) -> dict[str, float]:
    error = torch.where(weight.keep, weight.values, 0.0) - log_ratio.exp()
    gone = ~weight.keep
    return {
        "masked_below": _share(gone & (log_ratio < 0)),
        "masked_above": _share(gone & (log_ratio > 0)),
        "masked_positive": _share(gone & (advantages > 0)),
        "masked_negative": _share(gone & (advantages < 0)),
        "weight_error_correlation": _correlation(error.abs(), advantages.abs()),
    }


def _critic(algorithm: Algorithm, batch: TokenBatch, values: Tensor, returns: Tensor) -> dict[str, float]:
    chains = Chains.of(batch)
    rewards = chains.join(batch.rewards)
    gamma = rewards.new_tensor(algorithm.settings.get("gamma", 1.0))
    paid = chains.split(chains.segments.reverse_scan(gamma.expand_as(rewards), rewards))
    return {
        "explained_variance": diagnostics.explained_variance(values=values, returns=returns),
        "explained_variance_raw": diagnostics.explained_variance(values=values, returns=paid),
        "value_mean": float(values.mean()),
        "return_mean": float(returns.mean()),
    }


def _traces(batch: TokenBatch, log_ratio: Tensor, clip: tuple[float, float]) -> tuple[dict[str, float], list[float]]:
    """How the returns' own interval acts, and how much of the outcome each token still sees."""
    chains = Chains.of(batch)
    kappa = log_ratio.exp().clamp(*clip)
    product = diagnostics.trace_product(log_weights=chains.join(kappa.log()), segments=chains.segments)
    found, histogram = diagnostics.trace_histogram(log_product=product)
    return {
        "kappa_mean": float(kappa.mean()),
        "kappa_at_low": _share(kappa <= clip[0]),
        "kappa_at_high": _share(kappa >= clip[1]),
        **{f"log_trace_{name}": value for name, value in found.items()},
    }, histogram


def _share(chosen: Tensor) -> float:
    return float(chosen.float().mean())


def _correlation(one: Tensor, other: Tensor) -> float:
    one, other = one.double() - one.double().mean(), other.double() - other.double().mean()
    scale = (one.square().sum() * other.square().sum()).sqrt()
    return float((one * other).sum() / scale) if float(scale) > 1e-12 else 0.0
