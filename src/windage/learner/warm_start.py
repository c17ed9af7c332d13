"""Supervised warm start: imitation of demonstrations, with an optimizer of its own, before step 0."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from windage.errors import DataError, LearnerError, explain
from windage.learner.attention import rows_of
from windage.learner.config import WarmStartConfig
from windage.learner.forward import hidden_states
from windage.learner.model import Policy
from windage.learner.optimizer import Optimizer
from windage.learner.packed import pack
from windage.learner.protocol import Demonstration

__all__ = ["imitate"]


def imitate(
    policy: Policy,
    demonstrations: Sequence[Demonstration],
    *,
    steps: int,
    config: WarmStartConfig,
    seed: int,
    note: Callable[[str], None] = lambda text: None,
) -> Mapping[str, float]:
    """Minimise the mean negative log-likelihood of the masked tokens, ``config.batch`` conversations a step.

    Conversations are drawn epoch by epoch, each epoch in its own order. Temperature 1.

    Raises:
        DataError: no demonstration has a token to imitate.
        LearnerError: a gradient is not finite.
    """
    usable = [index for index, one in enumerate(demonstrations) if one.mask[1:].any()]
    if not usable:
        raise DataError(explain("no demonstration has a token to imitate", got=f"{len(demonstrations)} demonstrations"))
    optimizer = Optimizer(
        policy.trainable,
        lr=config.lr,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        warmup=config.warmup,
        schedule=config.schedule,
        total=steps,
    )
    order = _epochs(usable, np.random.default_rng(seed))
    started, losses, tokens = time.perf_counter(), [], 0
    for step in range(steps):
        chosen = [demonstrations[next(order)] for _ in range(config.batch)]
        loss, count = _step(policy, optimizer, chosen, config.micro_tokens, step)
        losses.append(loss)
        tokens += count
        if (step + 1) % max(1, steps // 16) == 0 or step + 1 == steps:
            note(f"warm start {step + 1}/{steps}: loss {loss:.3f} nats a token")
    seconds = time.perf_counter() - started
    recent = losses[-10:]
    return {
        "loss_first": losses[0] if losses else 0.0,
        "loss": sum(recent) / max(1, len(recent)),
        "steps": float(steps),
        "tokens": float(tokens),
        "seconds": seconds,
    }


def _epochs(indices: list[int], random: np.random.Generator) -> Iterator[int]:
    while True:
        yield from random.permutation(indices).tolist()


def _step(
    policy: Policy, optimizer: Optimizer, chosen: list[Demonstration], micro_tokens: int, step: int
) -> tuple[float, int]:
    total = sum(int(one.mask[1:].sum()) for one in chosen)
    loss_sum = torch.zeros((), device=policy.device)
    for part in _parts(chosen, micro_tokens):
        loss = _loss(policy, part) / total
        loss.backward()
        loss_sum += loss.detach()
    norm = optimizer.grad_norm()
    if not bool(torch.isfinite(norm)):
        raise LearnerError(explain(f"warm start step {step}: gradient is not finite", do="lower learner.warm_start.lr"))
    optimizer.step(norm)
    return float(loss_sum), total


def _parts(chosen: list[Demonstration], micro_tokens: int) -> list[list[Demonstration]]:
    parts: list[list[Demonstration]] = [[]]
    held = 0
    for one in chosen:
        if parts[-1] and held + len(one.token_ids) > micro_tokens:
            parts.append([])
            held = 0
        parts[-1].append(one)
        held += len(one.token_ids)
    return parts


def _loss(policy: Policy, part: list[Demonstration]) -> Tensor:
    """Summed negative log-likelihood of the masked tokens (the first token of a row has no prediction)."""
    packed = pack([one.token_ids for one in part], device=policy.device)
    mask = np.concatenate([np.concatenate([[False], one.mask[1:]]) for one in part])
    places = torch.tensor(np.flatnonzero(mask), device=policy.device)
    with rows_of(packed):
        hidden = hidden_states(policy, packed).index_select(0, places - 1)
        logprobs, _ = policy.logprobs(hidden, packed.token_ids.index_select(0, places), temperature=1.0)
        return -logprobs.sum()
