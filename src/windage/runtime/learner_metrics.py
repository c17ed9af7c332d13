"""The catalogue's lines for what the learner reports under ``learner/``. Floats arrive reduced over ranks already."""

from __future__ import annotations

from collections.abc import Mapping

from windage.runtime.catalogue import Metric
from windage.runtime.metrics import Histogram, Last

__all__ = ["HISTOGRAM_EDGES", "LEARNER_METRICS"]

HISTOGRAM_EDGES: Mapping[str, tuple[float, ...]] = {
    "log_trace": (-5.0, -4.0, -3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0),
}
"""Edges of histograms whose bins are not 0, 1, 2, …; the outermost bins are open."""

_TOKENS = "action tokens of the batch"

_UPDATE = (
    ("loss", "", _TOKENS, "Policy loss after reduction", "progress"),
    ("lr", "", "", "Learning rate of the policy", ""),
    ("grad_norm", "", "", "Norm of the policy's gradient before clipping", "report"),
    ("policy_updates", "updates", "", "Optimizer updates of the policy in this batch", ""),
    ("refused_updates", "batches", "", "1 when a non-finite gradient was refused", ""),
    ("drift_in_batch", "nats", _TOKENS, "|log-prob after - before the updates|", ""),
    ("entropy", "nats", _TOKENS, "Entropy of the policy", "report"),
    ("peak_bytes", "bytes", "", "Largest memory of the learner so far", ""),
)

_CRITIC = (
    ("critic_loss", "", _TOKENS, "Half squared error against the returns", "report"),
    ("critic_grad_norm", "", "", "Norm of the critic's gradient before clipping", ""),
    ("critic_updates", "updates", "", "Optimizer updates of the critic in this batch", ""),
    ("explained_variance", "share", _TOKENS, "Variance of the corrected returns that the critic explains", "report"),
    ("explained_variance_raw", "share", _TOKENS, "The same against the rewards really paid", ""),
    ("value_mean", "reward", _TOKENS, "Mean of the critic's values", ""),
    ("return_mean", "reward", _TOKENS, "Mean of the critic's targets", ""),
)

_RATIOS = (
    ("ess", "share", _TOKENS, "Effective sample size of the ratios", "progress"),
    ("kl", "nats", _TOKENS, "KL of the sampling policy from the trained one at batch entry", "progress"),
    ("ratio_below_half", "share", _TOKENS, "Tokens whose ratio is below 1/2 at batch entry", "report"),
    ("ratio_above_two", "share", _TOKENS, "Tokens whose ratio is above 2 at batch entry", "report"),
    ("ratio_clamped", "share", _TOKENS, "Tokens whose log-ratio was clamped", ""),
    ("tokens_dropped", "tokens", "", "Tokens without a usable behaviour log-prob", ""),
    ("advantage_zero", "share", _TOKENS, "Tokens that give the policy no gradient", ""),
    ("masked_below", "share", _TOKENS, "Masked: the ratio is below the policy's interval", "report"),
    ("masked_above", "share", _TOKENS, "Masked: the ratio is above the policy's interval", "report"),
    ("masked_positive", "share", _TOKENS, "Masked tokens with a positive advantage", ""),
    ("masked_negative", "share", _TOKENS, "Masked tokens with a negative advantage", ""),
    ("clipped_below", "share", _TOKENS, "Clipped below; 0 by construction with one update at lag 0", "report"),
    ("clipped_above", "share", _TOKENS, "Clipped above; 0 by construction with one update at lag 0", "report"),
    ("weight_error_correlation", "", _TOKENS, "Correlation of |weight - ratio| with |advantage|", ""),
    ("kappa_mean", "", _TOKENS, "Mean trace weight of the credit correction", ""),
    ("kappa_at_low", "share", _TOKENS, "Tokens at the lower end of the credit interval", "report"),
    ("kappa_at_high", "share", _TOKENS, "Tokens at the upper end of the credit interval", "report"),
    ("log_trace_alarm", "", "", "1 when the median product of trace weights leaves [0.1, 10]", ""),
)

LEARNER_METRICS: tuple[Metric, ...] = (
    *(Metric(f"learner/{name}", Last, *rest) for name, *rest in (*_UPDATE, *_CRITIC, *_RATIOS)),
    Metric("learner/kl_*", Last, "nats", _TOKENS, "Another estimate of the same divergence"),
    Metric("learner/log_trace_*", Last, "nats", _TOKENS, "Quantile of log Πκ from a token to the end of its episode"),
    Metric(
        "learner/mismatch_*", Last, "nats", "action tokens of that part", "Quantile of |log ratio|, or share outside"
    ),
    Metric("learner/histogram/*", Histogram, "tokens", "", "A distribution over the batch, bin by bin"),
    Metric("learner/*", Last, "", "", "A diagnostic of the algorithm, see its page"),
)
"""Members of an open family come after the names that are known."""
