"""Diagnostics: what ratios, credit and staleness of a batch look like. Pure functions; nothing carries gradient."""

from windage.diagnostics.ess import ess
from windage.diagnostics.explained_variance import explained_variance
from windage.diagnostics.kl import kl
from windage.diagnostics.mismatch import mismatch
from windage.diagnostics.outside import outside
from windage.diagnostics.quantiles import quantiles
from windage.diagnostics.staleness import staleness_histogram
from windage.diagnostics.trace_product import TRACE_EDGES, trace_histogram, trace_product

__all__ = [
    "TRACE_EDGES",
    "ess",
    "explained_variance",
    "kl",
    "mismatch",
    "outside",
    "quantiles",
    "staleness_histogram",
    "trace_histogram",
    "trace_product",
]
