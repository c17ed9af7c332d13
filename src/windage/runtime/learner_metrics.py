"""The catalogue's lines for what the learner reports under ``learner/``. Floats arrive reduced over ranks already."""

from __future__ import annotations

from windage.runtime.catalogue import Metric
from windage.runtime.metrics import Histogram, Last

__all__ = ["LEARNER_METRICS"]

_KNOWN = tuple(
    Metric(f"learner/{name}", Last, unit, per, meaning, shown)
    for name, unit, per, meaning, shown in (
        ("loss", "", "action tokens of the batch", "Policy loss after reduction", "progress"),
        ("kl", "nats", "action tokens of the batch", "KL of the sampling policy from the trained one", "progress"),
        ("ess", "share", "action tokens of the batch", "Effective sample size of the ratios", "progress"),
        ("entropy", "nats", "action tokens of the batch", "Entropy of the policy", "report"),
        ("grad_norm", "", "", "Norm of the policy's gradient before clipping", "report"),
        ("critic_loss", "", "action tokens of the batch", "Half squared error against the returns", "report"),
        ("lr", "", "", "Learning rate of the policy", ""),
        ("critic_grad_norm", "", "", "Norm of the critic's gradient before clipping", ""),
        ("policy_updates", "updates", "", "Optimizer updates of the policy in this batch", ""),
        ("critic_updates", "updates", "", "Optimizer updates of the critic in this batch", ""),
        ("refused_updates", "batches", "", "1 when a non-finite gradient was refused", ""),
        ("drift_in_batch", "nats", "action tokens of the batch", "|log-prob after - before the updates|", ""),
        ("peak_bytes", "bytes", "", "Largest memory of the learner so far", ""),
        (
            "explained_variance",
            "share",
            "action tokens of the batch",
            "Variance of the returns the critic explains",
            "",
        ),
    )
)

LEARNER_METRICS: tuple[Metric, ...] = (
    *_KNOWN,
    Metric("learner/mismatch_*", Last, "nats", "action tokens of that lag", "Quantile of |entry - behaviour log-prob|"),
    Metric("learner/histogram/*", Histogram, "", "", "A distribution over the batch, bin by bin"),
    Metric("learner/*", Last, "", "", "A diagnostic of the algorithm, see its page"),
)
"""Members of an open family come after the names that are known."""
