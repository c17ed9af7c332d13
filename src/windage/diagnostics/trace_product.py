"""The product of trace weights from each token to the end of its row: how much of the outcome a token still sees."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from windage.diagnostics.quantiles import quantiles
from windage.segments import Segments

__all__ = ["TRACE_EDGES", "trace_histogram", "trace_product"]

TRACE_EDGES: tuple[float, ...] = (-4.0, -3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0)
"""Inner edges of the histogram, in decades: bin 0 is below -4, the last bin at or above 4."""


def trace_product(*, log_weights: Tensor, segments: Segments) -> Tensor:
    """``log Π_{i≥t} κ_i`` for every token t, accumulated in float64 along its row."""
    return segments.reverse_scan(torch.ones_like(log_weights), log_weights)


def trace_histogram(*, log_product: Tensor) -> tuple[dict[str, float], list[float]]:
    """Quantiles of ``log Π κ`` (nats), an alarm, and counts between :data:`TRACE_EDGES`.

    ``alarm`` is 1 when the median product leaves [0.1, 10]: outcomes have faded, or explode (methods A.1.2).
    """
    found = {f"p{share * 100:g}": value for share, value in quantiles(log_product, (0.01, 0.1, 0.5, 0.9, 0.99)).items()}
    found["alarm"] = float(abs(found["p50"]) > math.log(10.0))
    edges = torch.tensor(TRACE_EDGES, device=log_product.device, dtype=torch.float64)
    bins = torch.bucketize(log_product.double() / math.log(10.0), edges, right=True)
    return found, [float(count) for count in torch.bincount(bins, minlength=len(TRACE_EDGES) + 1).tolist()]
