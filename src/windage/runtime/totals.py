"""Totals: what a run has done since its first batch, over all its sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from windage.runtime.pipeline import Step

__all__ = ["Totals"]


@dataclass(slots=True, kw_only=True)
class Totals:
    """Counters that a resumed run goes on counting.

    ``steps`` batches have a line in ``metrics.jsonl``.
    ``generated_before`` and ``seconds_before`` belong to earlier sessions; this session's own tokens come from its
    engines, which start at zero.
    """

    steps: int = 0
    outcomes: Counter[str] = field(default_factory=Counter[str])
    tokens_trained: int = 0
    staleness_max: int = 0
    generated_before: int = 0
    seconds: float = 0.0

    @classmethod
    def of_lines(cls, lines: Iterable[Mapping[str, Any]]) -> Totals:
        """Rebuild from the lines of ``metrics.jsonl`` that are kept."""
        totals = cls()
        for line in lines:
            totals.steps = int(line["step"]) + 1
            totals.staleness_max = max(totals.staleness_max, int(line.get("staleness/max", 0)))
            totals.seconds += float(line.get("time/step", 0.0))
            totals.tokens_trained = int(line.get("tokens/trained", totals.tokens_trained))
            totals.generated_before = int(line.get("tokens/generated", totals.generated_before))
            for outcome in ("updated", "critic_only", "skipped"):
                totals.outcomes[outcome] = int(line.get(f"outcome/{outcome}", totals.outcomes[outcome]))
        return totals

    def count(self, step: Step) -> None:
        """One more batch is completed."""
        self.steps = step.batch.step + 1
        self.outcomes[step.report.outcome] += 1
        self.tokens_trained += step.report.tokens_trained
        self.staleness_max = max(self.staleness_max, int(step.batch.staleness.max(initial=0)))

    def as_metrics(self, *, tokens_generated: int) -> dict[str, float]:
        """The counters as metrics of one line; ``tokens_generated`` by this session."""
        return {
            "tokens/trained": self.tokens_trained,
            "tokens/generated": self.generated_before + tokens_generated,
            **{f"outcome/{name}": self.outcomes[name] for name in ("updated", "critic_only", "skipped")},
        }
