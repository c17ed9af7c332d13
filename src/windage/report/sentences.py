"""One sentence a plot: what to see in it."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["SENTENCES"]

SENTENCES: Mapping[str, str] = {
    "learning": (
        "Held-out success (points, 95 % interval) should rise with training reward (faint: single batches; "
        "line: moving mean); a gap that opens between them is overfitting to the training tasks."
    ),
    "staleness": (
        "The largest staleness never crosses the dashed bound; a mean near zero would say that the run was on-policy."
    ),
    "staleness_map": (
        "Share of each batch's rows by staleness: one dark band is a steady pipeline; dark rows that drift "
        "upwards show a queue that grows."
    ),
    "ratios": (
        "Effective share of the batch under its importance ratios: 1 is on-policy; a fall towards 0 says that"
        " few tokens carry the update."
    ),
    "share_outside": (
        "Share of tokens whose ratio lies outside the interval of each channel; all tokens stay in the denominator."
    ),
    "divergence": (
        "Distance between the policy that sampled and the one that trains: it grows with staleness and "
        "learning rate, and a jump is a warning."
    ),
    "mismatch": (
        "Distance between the log-probs of engine and learner for the same token: at lag 0 it is numerical noise and "
        "must stay tiny; stale tokens add the policy's own movement."
    ),
    "histogram": "Share of the batch in each bin: a band that spreads or moves is a distribution that does.",
    "trace_product": (
        "log Πκ over each row: near 0 the correction keeps the signal of far rewards; far below 0 it has cut "
        "it, far above it is magnified."
    ),
    "loss": (
        "Entropy that collapses to 0 ends exploration; gradient norms with spikes ask for a smaller step or a"
        " tighter interval."
    ),
    "critic": (
        "Explained variance near 1: the critic predicts the returns; at or below 0 it is no better than a constant."
    ),
    "queue": (
        "Waiting near zero: the learner is faster than generation; waiting at its limit: generation is faster"
        " and admission holds it back."
    ),
    "time": (
        "Seconds of a step by what the learner did: in a balanced asynchronous run waiting and publishing stay thin."
    ),
    "speed": ("Tokens sampled per second of wall clock, and trained per second of training."),
}
