"""What one batch says about ratios, entropy and memory: floats and histograms for the report."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from windage.learner.entry import Entry
from windage.learner.memory import peak_bytes
from windage.tokens import TokenBatch

__all__ = ["measure"]


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
        metrics, histograms = dict(tally), {}
        if entry.measured:
            settings = {"entry_logprobs": entry.logprobs, "credit": credit, "values": entry.values}
            found, histograms = algorithm.diagnostics(whole, logprobs=last_logprobs, **settings)
            metrics = {**found, **tally}
        if entry.entropy is not None:
            metrics["entropy"] = float(entry.entropy.mean())
        if last_logprobs is not None:
            metrics["drift_in_batch"] = float((last_logprobs - entry.logprobs).abs().mean())
        metrics["peak_bytes"] = float(peak_bytes(whole.token_ids.device))
    return metrics, histograms
