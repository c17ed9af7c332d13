"""What one batch says about ratios, mismatch, entropy and memory: floats and histograms for the report."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from windage.learner.entry import Entry
from windage.learner.memory import peak_bytes
from windage.tokens import TokenBatch

__all__ = ["measure"]

_QUANTILES = (0.5, 0.9, 0.99, 1.0)


def measure(
    algorithm: Any,
    whole: TokenBatch,
    entry: Entry,
    credit: Any,
    *,
    last_logprobs: Tensor | None,
    tally: dict[str, float],
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The algorithm's own diagnostics, then ours. Nothing here carries gradient."""
    with torch.no_grad():
        settings = {"entry_logprobs": entry.logprobs, "credit": credit, "values": entry.values}
        metrics, histograms = algorithm.diagnostics(whole, logprobs=last_logprobs, **settings)
        metrics = {**metrics, **tally, **_mismatch(whole, entry.logprobs)}
        if entry.entropy is not None:
            metrics["entropy"] = float(entry.entropy.mean())
        if last_logprobs is not None:
            metrics["drift_in_batch"] = float((last_logprobs - entry.logprobs).abs().mean())
        metrics["peak_bytes"] = float(peak_bytes(whole.token_ids.device))
    return metrics, histograms


def _mismatch(whole: TokenBatch, entry_logprobs: Tensor) -> dict[str, float]:
    """Quantiles of |entry - behaviour| log-prob, at lag 0 (engines differ) apart from lag > 0 (policies differ)."""
    gap = (entry_logprobs - whole.behavior_logprobs).abs()
    found: dict[str, float] = {}
    for name, chosen in (("lag0", whole.staleness == 0), ("stale", whole.staleness > 0)):
        part = gap[chosen].sort().values
        if len(part):
            for share in _QUANTILES:
                place = min(len(part) - 1, int(share * len(part)))
                found[f"mismatch_{name}_p{share * 100:g}"] = float(part[place])
    return found
