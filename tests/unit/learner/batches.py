"""Batches and a tiny algorithm for the learner: no formula under test is its own oracle."""

from dataclasses import dataclass, field

import numpy as np
import torch

from windage.records import MicroBatch, Row, StopReason, TrainBatch

VOCAB = 60


def make_row(index, prompt, actions, *, seed=0, group=0, reward=1.0, stop=StopReason.EOS, version=0, gap=0):
    """``prompt`` tokens, ``actions`` sampled tokens with ``gap`` observed tokens in their middle."""
    random = np.random.default_rng([seed, index])
    mask = np.array([False] * prompt + [True] * (actions // 2) + [False] * gap + [True] * (actions - actions // 2))
    size = len(mask)
    ids = random.integers(5, VOCAB, size).astype(np.int32)
    logprobs = np.where(mask, -random.uniform(0.5, 4.0, size), np.nan).astype(np.float32)
    rewards = np.zeros(size, dtype=np.float32)
    if mask.any():
        rewards[np.flatnonzero(mask)[-1]] = reward
    return Row(
        row_id=f"r{index}",
        trajectory_id=f"t{index}",
        group_id=f"g{group}",
        token_ids=ids,
        action_mask=mask,
        behavior_logprobs=logprobs,
        policy_version=np.where(mask, version, -1).astype(np.int32),
        rewards=rewards,
        turn_ids=np.where(mask, 0, -1).astype(np.int32),
        stop_reason=stop,
    )


def make_batch(step=0, *, sizes=((4, 6), (3, 9), (5, 1), (2, 14), (4, 4), (6, 8)), cut=None, seed=0, version=0, **row):
    """Rows of (prompt, actions) sizes with rewards ±1; ``cut`` lists the rows of each micro-batch."""
    rows = tuple(
        make_row(i, p, a, seed=seed + step, group=i // 2, reward=(1.0, -1.0)[i % 2], version=version, **row)
        for i, (p, a) in enumerate(sizes)
    )
    cut = [list(range(len(rows)))] if cut is None else cut
    return TrainBatch(
        step=step,
        version=version,
        rows=rows,
        rewards=np.array([(1.0, -1.0)[i % 2] for i in range(len(rows))], dtype=np.float32),
        staleness=np.zeros(len(rows), dtype=np.int32),
        trajectory_of=np.arange(len(rows), dtype=np.int32),
        group_of=np.array([i // 2 for i in range(len(rows))], dtype=np.int32),
        micro_batches=tuple(MicroBatch(rows=tuple(part), tokens=sum(len(rows[i]) for i in part)) for part in cut),
        group_ids=tuple(f"g{i}" for i in range((len(rows) + 1) // 2)),
    )


@dataclass
class Credit:
    advantages: torch.Tensor
    returns: torch.Tensor


@dataclass
class PlainAlgorithm:
    """REINFORCE on the raw outcome, token-mean; the critic regresses on the outcome. Remembers what it was given."""

    critic: bool = False
    scale: float = 1.0
    recompute_entry: bool = True
    spoil: str = ""
    losses: list = field(default_factory=list)

    def credit(self, batch, *, entry_logprobs, values=None, bootstrap=None):
        self.given = {"entry": entry_logprobs, "values": values, "bootstrap": bootstrap}
        outcome = batch.outcomes[batch.segments.row_of]
        return Credit(advantages=self.scale * outcome, returns=outcome)

    def loss(self, batch, *, logprobs, entry_logprobs, advantages):
        spoilt = torch.where(logprobs == logprobs[0], torch.nan, 1.0) if self.spoil == "policy" else 1.0
        self.losses.append((logprobs.detach(), entry_logprobs, advantages, batch.outcomes[batch.segments.row_of]))
        return -advantages * logprobs * spoilt

    def totals(self, batch):
        return len(batch.token_ids)

    def reduce(self, loss, batch, totals):
        return loss.sum() / totals

    def critic_loss(self, values, returns, entry_values, batch, totals):
        loss = 0.5 * (values - returns).square().sum() / totals
        return loss * torch.nan if self.spoil == "critic" else loss

    def diagnostics(self, batch, *, logprobs=None, entry_logprobs, credit, values):
        self.reported = entry_logprobs
        return {"seen": float(len(batch.token_ids))}, {}
