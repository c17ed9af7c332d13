"""One batch: entry pass, credit, optimizer updates, report.

rows ─► TokenBatch ─► entry pass ─► credit ─► [policy gradient, critic gradient ─► finite? ─► step both] × updates
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from windage.learner.attention import rows_of
from windage.learner.config import LearnerConfig
from windage.learner.critic import SeparateCritic
from windage.learner.entry import Entry, enter
from windage.learner.forward import autocast, hidden_states
from windage.learner.measure import measure
from windage.learner.piece import Piece, cut
from windage.learner.protocol import StepReport
from windage.learner.state import LearnerState
from windage.records import TrainBatch
from windage.tokens import TokenBatch

__all__ = ["Update"]


@dataclass(slots=True)
class _Tally:
    """Sums over the updates of a batch."""

    policy_updates: int = 0
    critic_updates: int = 0
    loss: float = 0.0
    critic_loss: float = 0.0
    grad_norm: float = 0.0
    critic_grad_norm: float = 0.0
    refused: str = ""
    first_logprobs: Tensor | None = None
    last_logprobs: Tensor | None = None
    seconds: dict[str, float] = field(default_factory=dict)


class Update:
    """Trains ``state`` on batches by ``algorithm``; :meth:`train` is the whole of it."""

    def __init__(self, state: LearnerState, *, algorithm: Any, config: LearnerConfig) -> None:
        self.state = state
        self.algorithm = algorithm
        self.config = config

    def train(self, batch: TrainBatch) -> StepReport:
        """Consume ``batch``: update, train the critic alone, or skip; nothing in between (trap 33)."""
        clock = _Clock()
        whole = TokenBatch.from_batch(batch, self.state.policy.device)
        if not len(whole.token_ids):
            return self._finish(batch, whole, "skipped", reason="no action tokens with a usable log-prob", clock=clock)
        pieces = cut(batch, whole)
        entry = self._entry(whole, pieces)
        clock.lap("entry")
        with torch.no_grad():
            credit = self.algorithm.credit(
                whole, entry_logprobs=entry.logprobs, values=entry.values, bootstrap=entry.bootstrap
            )
        clock.lap("credit")
        tally = self._updates(batch, whole, pieces, entry, credit)
        if not entry.measured and tally.first_logprobs is not None:
            entry = replace(entry, logprobs=tally.first_logprobs, measured=True)
        clock.lap("update")
        outcome, reason = self._outcome(tally, credit)
        if outcome != "skipped" and self.state.critic is not None:
            self.state.critic_batches += 1
        metrics, histograms = measure(
            self.algorithm, whole, entry, credit, last_logprobs=tally.last_logprobs, tally=_numbers(tally)
        )
        metrics["lr"] = self.state.optimizer.lr
        return self._finish(batch, whole, outcome, reason=reason, clock=clock, metrics=metrics, histograms=histograms)

    # -- what is known before anything moves -------------------------------------------------------------------------

    def _entry(self, whole: TokenBatch, pieces: list[Piece]) -> Entry:
        """Log-probs and values at batch entry. Where the method asks for neither, the first update will tell."""
        asked = self.algorithm.recompute_entry or self.state.critic is not None or self.config.entropy
        if not asked and self.config.update_rows == "all":
            return Entry(logprobs=whole.behavior_logprobs.clone(), measured=False)
        fused = self._fused(pieces)
        return enter(self.state, whole, pieces, entropy=self.config.entropy, keep_graph=fused)

    # -- what moves --------------------------------------------------------------------------------------------------

    def _fused(self, pieces: list[Piece]) -> bool:
        """The entry pass can serve the first update: one piece, all rows, no recomputation of activations to mind."""
        return len(pieces) == 1 and self.config.update_rows == "all" and not self._warming_up() and not self._joint

    @property
    def _joint(self) -> bool:
        """Policy and value head learn in one backward pass."""
        return self.state.critic is not None and self.config.critic.trunk_gradient

    def _warming_up(self) -> bool:
        return self.state.critic is not None and self.state.critic_batches < self.config.critic.warmup

    def _updates(self, batch: TrainBatch, whole: TokenBatch, pieces: list[Piece], entry: Entry, credit: Any) -> _Tally:
        tally = _Tally()
        moves_policy = not self._warming_up() and bool((credit.advantages != 0).any())
        policy_updates = self.config.updates_per_batch if moves_policy else 0
        joint = self._joint and moves_policy
        critic_updates = 0 if self.state.critic is None or joint else self.config.critic.updates
        slices = self._slices(batch, whole, pieces)
        for index in range(max(policy_updates, critic_updates)):
            rows, totals = slices[index % len(slices)]
            live = entry.live if index == 0 else None
            if index < policy_updates:
                tally.last_logprobs = self._policy_gradient(rows, totals, entry, credit, tally, live=live, joint=joint)
                tally.first_logprobs = tally.last_logprobs if index == 0 else tally.first_logprobs
            if index < critic_updates:
                self._critic_gradient(pieces, slices[0][1] if len(slices) == 1 else None, whole, entry, credit, tally)
            if not self._step(index < policy_updates, index < critic_updates or joint, tally):
                break
        return tally

    def _slices(self, batch: TrainBatch, whole: TokenBatch, pieces: list[Piece]) -> list[tuple[list[Piece], Any]]:
        """Rows and denominators of each update; every n-th row, so that the cut into micro-batches does not matter."""
        if self.config.update_rows == "all":
            return [(pieces, self.algorithm.totals(whole))]
        count = self.config.updates_per_batch
        shares = [list(range(start, len(batch.rows), count)) for start in range(count)]
        return [
            (cut(batch, whole, only=share), self.algorithm.totals(whole.select(share)))
            for share in shares
            if any(len(batch.rows[row]) for row in share)
        ]

    def _policy_gradient(
        self,
        pieces: list[Piece],
        totals: Any,
        entry: Entry,
        credit: Any,
        tally: _Tally,
        *,
        live: Tensor | None,
        joint: bool,
    ) -> Tensor:
        """Accumulate the gradient of the global loss over ``pieces``; returns the log-probs they had, f32 [N]."""
        seen = entry.logprobs.clone()
        loss_sum = entry.logprobs.new_zeros(())
        for piece in pieces:
            with rows_of(piece.packed):
                logprobs, extra = self._forward(piece, entry, credit, totals, live, joint)
                loss = self.algorithm.reduce(
                    self.algorithm.loss(
                        piece.tokens,
                        logprobs=logprobs,
                        entry_logprobs=entry.logprobs[piece.index],
                        advantages=credit.advantages[piece.index],
                    ),
                    piece.tokens,
                    totals,
                )
                (loss if extra is None else loss + extra).backward()
            loss_sum += loss.detach()
            seen[piece.index] = logprobs.detach()
        tally.loss = float(loss_sum)
        return seen

    def _forward(
        self,
        piece: Piece,
        entry: Entry,
        credit: Any,
        totals: Any,
        live: Tensor | None,
        joint: bool,
    ) -> tuple[Tensor, Tensor | None]:
        """Log-probs of a piece and, where the value head moves the trunk, the weighted value loss."""
        if live is not None:
            return live, None
        hidden = hidden_states(self.state.policy, piece.packed).index_select(0, piece.predict_at)
        logprobs, _ = self.state.policy.logprobs(hidden, piece.tokens.token_ids)
        if not joint:
            return logprobs, None
        assert self.state.critic is not None
        value_loss = self._value_loss(self.state.critic(hidden), piece, entry, credit, totals)
        return logprobs, self.config.critic.coefficient * value_loss

    def _critic_gradient(
        self, pieces: list[Piece], totals: Any, whole: TokenBatch, entry: Entry, credit: Any, tally: _Tally
    ) -> None:
        """Accumulate the gradient of the value loss over the whole batch."""
        critic = self.state.critic
        assert critic is not None
        totals = self.algorithm.totals(whole) if totals is None else totals
        loss_sum = entry.logprobs.new_zeros(())
        for piece in pieces:
            with rows_of(piece.packed):
                if isinstance(critic, SeparateCritic):
                    with autocast(self.state.policy):
                        hidden = critic.hidden(piece.packed)
                    values = critic.head(hidden.index_select(0, piece.predict_at))
                else:
                    assert entry.hidden is not None
                    values = critic(entry.hidden[piece.index])
                loss = self._value_loss(values, piece, entry, credit, totals)
                loss.backward()
            loss_sum += loss.detach()
        tally.critic_loss = float(loss_sum)

    def _value_loss(self, values: Tensor, piece: Piece, entry: Entry, credit: Any, totals: Any) -> Tensor:
        assert entry.values is not None
        return self.algorithm.critic_loss(
            values, credit.returns[piece.index], entry.values[piece.index], piece.tokens, totals
        )

    def _step(self, policy: bool, critic: bool, tally: _Tally) -> bool:
        """Step the optimizers that have gradients, all or none; False when a gradient is not finite."""
        chosen = [(name, opt) for name, opt in self.state.optimizers.items() if (policy, critic)[name == "critic"]]
        norms = [(name, optimizer, optimizer.grad_norm()) for name, optimizer in chosen]
        bad = [name for name, _, norm in norms if not bool(torch.isfinite(norm))]
        if bad:
            for optimizer in self.state.optimizers.values():
                optimizer.discard()
            tally.refused = f"gradient of the {' and '.join(bad)} is not finite"
            return False
        for name, optimizer, norm in norms:
            optimizer.step(norm)
            if name == "critic":
                tally.critic_updates += 1
                tally.critic_grad_norm = float(norm)
            else:
                tally.policy_updates += 1
                tally.grad_norm = float(norm)
        return True

    # -- what is said about it ---------------------------------------------------------------------------------------

    def _outcome(self, tally: _Tally, credit: Any) -> tuple[str, str]:
        if tally.policy_updates:
            return "updated", tally.refused
        if tally.critic_updates:
            return "critic_only", tally.refused or ("warm-up" if self._warming_up() else "every advantage is zero")
        if not tally.refused and not bool((credit.advantages != 0).any()):
            return "skipped", "every advantage is zero: nothing to learn"
        return "skipped", tally.refused

    def _finish(
        self,
        batch: TrainBatch,
        whole: TokenBatch,
        outcome: str,
        *,
        reason: str,
        clock: _Clock,
        metrics: dict[str, float] | None = None,
        histograms: dict[str, list[float]] | None = None,
    ) -> StepReport:
        self.state.step = batch.step + 1
        trained = len(whole.token_ids) if outcome == "updated" else 0
        seconds = clock.total()
        return StepReport(
            step=batch.step,
            outcome=outcome,
            reason=reason,
            metrics={**(metrics or {}), **clock.metrics(), "tokens_per_second": len(whole.token_ids) / seconds},
            histograms=histograms or {},
            seconds=seconds,
            tokens_trained=trained,
            tokens_dropped=whole.dropped,
        )


class _Clock:
    """Seconds per phase, on the wall."""

    def __init__(self) -> None:
        self._start = self._last = time.perf_counter()
        self._laps: dict[str, float] = {}

    def lap(self, phase: str) -> None:
        now = time.perf_counter()
        self._laps[phase] = now - self._last
        self._last = now

    def total(self) -> float:
        return time.perf_counter() - self._start

    def metrics(self) -> dict[str, float]:
        return {f"seconds_{phase}": seconds for phase, seconds in self._laps.items()}


def _numbers(tally: _Tally) -> dict[str, float]:
    numbers = {
        "loss": tally.loss,
        "grad_norm": tally.grad_norm,
        "policy_updates": float(tally.policy_updates),
        "refused_updates": float(bool(tally.refused)),
    }
    if tally.critic_updates:
        numbers |= {
            "critic_loss": tally.critic_loss,
            "critic_grad_norm": tally.critic_grad_norm,
            "critic_updates": float(tally.critic_updates),
        }
    return numbers
