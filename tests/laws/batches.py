"""Batches for the laws: whole records, so that what the laws say holds from the door to the gradient."""

import numpy as np
import torch

from windage.records import MicroBatch, Row, StopReason, TrainBatch
from windage.tokens import TokenBatch

EPISODES = (  # group, actions of each row, outcome, how it ended, version
    (0, (5,), 1.0, StopReason.EOS, 3),
    (0, (3, 4), 0.0, StopReason.ENV_DONE, 2),
    (0, (2,), 0.0, StopReason.TRUNCATED, 1),
    (1, (4,), 1.0, StopReason.EOS, 3),
    (1, (1,), 0.0, StopReason.EOS, 3),
    (1, (6, 1, 2), 0.5, StopReason.TRUNCATED, 0),
    (2, (3,), 1.0, StopReason.EOS, 3),
    (2, (2,), 1.0, StopReason.EOS, 3),
)
VERSION = 3


def make_row(index, part, parts, padding, random):
    """Row ``part`` of an episode cut into ``parts``; ``padding`` more tokens in its prompt, after it and inside."""
    group, actions, outcome, stop, version = EPISODES[index]
    count, last = actions[part], part == parts - 1
    mask = [False] * (2 + padding)
    for token in range(count):
        mask += [True] + [False] * (padding if token % 2 else 0)
    mask = np.array([*mask, *[False] * padding])
    rewards = np.zeros(len(mask), np.float32)
    places = np.flatnonzero(mask)
    if last and len(places):
        rewards[places[-1]] = outcome
    logprobs = np.full(len(mask), np.nan, np.float32)
    logprobs[places] = -random.uniform(0.2, 3.0, count)
    return Row(
        row_id=f"e{index}.{part}",
        trajectory_id=f"e{index}",
        group_id=f"g{group}",
        token_ids=np.full(len(mask), 7, np.int32),
        action_mask=mask,
        behavior_logprobs=logprobs,
        policy_version=np.where(mask, version, -1).astype(np.int32),
        rewards=rewards,
        turn_ids=np.where(mask, part, -1).astype(np.int32),
        stop_reason=stop,
    )


def make_batch(*, padding=0, order=None, joined=False):
    """A TokenBatch of eight episodes in three groups, some cut into rows.

    ``padding``  tokens that nobody sampled, more of them
    ``order``    a permutation of the rows
    ``joined``   every episode as one row
    """
    rows, of, groups, outcomes = [], [], [], []
    for index, (group, actions, outcome, _, _) in enumerate(EPISODES):
        random = np.random.default_rng(index)
        if joined:
            rows.append(join([make_row(index, part, len(actions), padding, random) for part in range(len(actions))]))
        else:
            rows += [make_row(index, part, len(actions), padding, random) for part in range(len(actions))]
        new = len(rows) - len(of)
        of += [index] * new
        groups += [group] * new
        outcomes += [outcome] * new
    order = list(range(len(rows))) if order is None else order
    batch = TrainBatch(
        step=0,
        version=VERSION,
        rows=tuple(rows[i] for i in order),
        rewards=np.array([outcomes[i] for i in order], np.float32),
        staleness=np.zeros(len(rows), np.int32),
        trajectory_of=np.array([of[i] for i in order], np.int32),
        group_of=np.array([groups[i] for i in order], np.int32),
        micro_batches=(MicroBatch(rows=tuple(range(len(rows))), tokens=1),),
        group_ids=("g0", "g1", "g2"),
    )
    return TokenBatch.from_batch(batch)


def join(rows):
    names = ("token_ids", "action_mask", "behavior_logprobs", "policy_version", "rewards", "turn_ids")
    arrays = {name: np.concatenate([getattr(row, name) for row in rows]) for name in names}
    first = rows[0]
    return Row(
        row_id=first.row_id,
        trajectory_id=first.trajectory_id,
        group_id=first.group_id,
        stop_reason=first.stop_reason,
        **arrays,
    )


def learner_side(batch, *, drift=0.4, seed=0):
    """Entry and current log-probs, values and bootstraps that are a function of the token, not of its place."""
    key = batch.behavior_logprobs.double()
    entry = batch.behavior_logprobs + drift * torch.sin(1000 * key + seed).float()
    logprobs = entry + 0.5 * drift * torch.cos(777 * key + seed).float()
    values = 0.5 + 0.3 * torch.sin(333 * key).float()
    bootstrap = 0.1 + 0.1 * batch.trajectory_of.float()
    return {"entry_logprobs": entry, "logprobs": logprobs, "values": values, "bootstrap": bootstrap}
