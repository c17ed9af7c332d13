"""Algorithm: a value with four fields, read left to right: returns → corrections → objective → reduce."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

from windage import reduce as reductions
from windage.algorithms.ask import ask
from windage.algorithms.chains import Chains
from windage.algorithms.report import report
from windage.algorithms.whiten import whiten
from windage.corrections.ratio import ratio
from windage.corrections.weight import Weight
from windage.errors import ConfigError, explain
from windage.reduce import Totals
from windage.returns.credit import Credit
from windage.tokens import TokenBatch

__all__ = ["Algorithm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Algorithm:
    """Four pure functions, each called with exactly the keyword arguments it asks for, and what surrounds them.

    ``returns``      whole batch, no gradient: -> Credit. May ask for ``rewards, values, log_ratio, segments,
                     bootstrap, outcomes, group_of, valid, lengths``; its segments are trajectories
    ``corrections``  per update, no gradient: -> Weight, or None. May ask for ``log_ratio, entry_log_ratio``
    ``objective``    -> unreduced loss. May ask for ``logprobs, anchor_logprobs, behavior_logprobs, advantages``
    ``reduce``       ``(loss, batch, totals) -> scalar``; parts of a batch add up to the whole
    ``anchor``       what ``anchor_logprobs`` means: the engine's or the learner's at batch entry
    ``whiten``       advantages to mean 0, variance 1 over the tokens of the whole batch
    ``trace``        interval of the weights inside the returns, for diagnostics
    ``value_clip``   largest step of a value from its entry value in the critic's loss
    """

    name: str
    returns: Callable[..., Credit]
    corrections: Callable[..., Weight] | None
    objective: Callable[..., Tensor]
    reduce: Callable[[Tensor, TokenBatch, Totals], Tensor]
    needs: frozenset[str]
    anchor: Literal["behavior", "entry"] = "behavior"
    whiten: bool = False
    value_clip: float | None = None
    trace: tuple[float, float] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def critic(self) -> bool:
        """True where a critic is trained."""
        return "critic" in self.needs

    @property
    def recompute_entry(self) -> bool:
        """True where log-probs of the learner at batch entry are part of the method."""
        return "entry" in self.needs

    @torch.no_grad()
    def credit(
        self,
        batch: TokenBatch,
        *,
        entry_logprobs: Tensor,
        values: Tensor | None = None,
        bootstrap: Tensor | None = None,
    ) -> Credit:
        """Advantages and critic targets of the **whole** TrainBatch.

        Args:
            batch: every row of the TrainBatch.
            entry_logprobs: learner before its first update, [tokens].
            values: critic before each token, [tokens].
            bootstrap: critic after the last token of each row, [rows]; read where an episode was truncated.

        Raises:
            ConfigError: the method needs a critic and there are no values.
        """
        if self.critic and (values is None or (bootstrap is None and bool(batch.truncated.any()))):
            raise ConfigError(
                explain(
                    f"algorithm {self.name} needs a critic",
                    got=f"values: {values is not None}, bootstrap: {bootstrap is not None}",
                    expected="a value for each token, and one after each truncated row",
                )
            )
        chains = Chains.of(batch)
        found = ask(self.returns, _evidence(batch, chains, entry_logprobs, values, bootstrap))
        advantages = chains.split(found.advantages.float())
        if self.whiten:
            advantages = whiten(advantages)
        return Credit(
            advantages=advantages, returns=None if found.returns is None else chains.split(found.returns.float())
        )

    def loss(self, batch: TokenBatch, *, logprobs: Tensor, entry_logprobs: Tensor, advantages: Tensor) -> Tensor:
        """Unreduced loss of some rows, f32 [tokens]; only ``logprobs`` carries gradient.

        What a token outside the correction's interval holds reaches neither value nor gradient.
        """
        behavior, entry = batch.behavior_logprobs, entry_logprobs.detach()
        weight = self.weight(batch, logprobs=logprobs, entry_logprobs=entry)
        if weight is not None:  # select going in, for the gradient, and coming out, for the value
            logprobs = torch.where(weight.keep, logprobs, 0.0)
        loss = ask(
            self.objective,
            {
                "logprobs": logprobs,
                "behavior_logprobs": behavior,
                "anchor_logprobs": entry if self.anchor == "entry" else behavior,
                "advantages": advantages.detach(),
            },
        )
        return loss if weight is None else torch.where(weight.keep, weight.values * loss, 0.0)

    @torch.no_grad()
    def weight(self, batch: TokenBatch, *, logprobs: Tensor, entry_logprobs: Tensor) -> Weight | None:
        """The correction of each token at the present policy; None where the method has none."""
        if self.corrections is None:
            return None
        behavior = batch.behavior_logprobs
        return ask(
            self.corrections,
            {
                "log_ratio": ratio(logprobs=logprobs, anchor_logprobs=behavior).log,
                "entry_log_ratio": ratio(logprobs=entry_logprobs, anchor_logprobs=behavior).log,
            },
        )

    def totals(self, batch: TokenBatch) -> Totals:
        """Denominators of everything that one update sees."""
        return reductions.totals(batch)

    def critic_loss(
        self, values: Tensor, returns: Tensor, entry_values: Tensor, batch: TokenBatch, totals: Totals
    ) -> Tensor:
        """``½ (V - G)²``, or with ``value_clip`` the larger of it and the clipped value's; reduced like the policy."""
        returns, entry_values = returns.detach(), entry_values.detach()
        loss = 0.5 * (values.float() - returns).square()
        if self.value_clip is not None:
            near = entry_values + (values.float() - entry_values).clamp(-self.value_clip, self.value_clip)
            loss = torch.maximum(loss, 0.5 * (near - returns).square())
        return self.reduce(loss, batch, totals)

    @torch.no_grad()
    def diagnostics(
        self,
        batch: TokenBatch,
        *,
        entry_logprobs: Tensor,
        credit: Credit,
        values: Tensor | None = None,
        logprobs: Tensor | None = None,
    ) -> tuple[dict[str, float], dict[str, list[float]]]:
        """Numbers and histograms of the whole batch; ``logprobs`` are those of the last update, if there was one."""
        return report(self, batch, entry_logprobs=entry_logprobs, credit=credit, values=values, logprobs=logprobs)


def _evidence(
    batch: TokenBatch, chains: Chains, entry_logprobs: Tensor, values: Tensor | None, bootstrap: Tensor | None
) -> dict[str, Any]:
    """Everything a return estimator may ask for, in chain order."""
    log_ratio = ratio(logprobs=entry_logprobs, anchor_logprobs=batch.behavior_logprobs).log
    last = chains.last
    return {
        "rewards": chains.join(batch.rewards),
        "values": None if values is None else chains.join(values.float()),
        "log_ratio": chains.join(log_ratio),
        "segments": chains.segments,
        "bootstrap": None if bootstrap is None else torch.where(batch.truncated[last], bootstrap.float()[last], 0.0),
        "outcomes": batch.outcomes[last],
        "group_of": batch.group_of[last],
        "valid": ~batch.aborted[last],
        "lengths": chains.segments.lengths,
    }
