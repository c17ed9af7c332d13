"""TokenBatch: what of a batch is an action token, and what becomes of the rest."""

import numpy as np
import pytest
import torch

from windage.records import MicroBatch, Row, StopReason, TrainBatch
from windage.tokens import TokenBatch


def row(mask, *, index=0, trajectory=0, group=0, stop=StopReason.EOS, version=0, **changes):
    """A row from a string: ``p`` prompt, ``a`` sampled, ``o`` observed."""
    action = np.array([kind == "a" for kind in mask])
    size = len(mask)
    arrays = {
        "token_ids": np.arange(10, 10 + size, dtype=np.int32),
        "behavior_logprobs": np.where(action, -0.1 * np.arange(size), np.nan).astype(np.float32),
        "policy_version": np.where(action, version, -1).astype(np.int32),
        "rewards": np.zeros(size, np.float32),
        "turn_ids": np.where(action, 0, -1).astype(np.int32),
    }
    return Row(
        row_id=f"r{index}",
        trajectory_id=f"t{trajectory}",
        group_id=f"g{group}",
        action_mask=action,
        stop_reason=stop,
        **{**arrays, **changes},
    )


def batch(rows, *, version=3, trajectories=None, groups=None, outcomes=None):
    count = len(rows)
    return TrainBatch(
        step=0,
        version=version,
        rows=tuple(rows),
        rewards=np.asarray(outcomes if outcomes is not None else [0.0] * count, np.float32),
        staleness=np.zeros(count, np.int32),
        trajectory_of=np.asarray(trajectories if trajectories is not None else range(count), np.int32),
        group_of=np.asarray(groups if groups is not None else [0] * count, np.int32),
        micro_batches=(MicroBatch(rows=tuple(range(count)), tokens=sum(map(len, rows))),),
        group_ids=("g0",),
    )


def test_only_action_tokens_are_kept():
    versions = np.array([-1, 1, 2, -1, 3], np.int32)
    found = TokenBatch.from_batch(
        batch([row("paaoa", policy_version=versions), row("pp"), row("ppa", version=3)], outcomes=[1.0, 2.0, 3.0])
    )
    assert found.segments.lengths.tolist() == [3, 0, 1]
    assert found.token_ids.tolist() == [11, 12, 14, 12]
    assert found.predict_at.tolist() == [0, 1, 3, 1]
    assert found.last_input.tolist() == [4, 1, 2]
    assert found.policy_version.tolist() == [1, 2, 3, 3]
    assert found.staleness.tolist() == [2, 1, 0, 0]
    assert found.outcomes.tolist() == [1.0, 2.0, 3.0]
    assert found.sampled.tolist() == [3, 0, 1]
    assert found.dropped == 0
    torch.testing.assert_close(found.behavior_logprobs, torch.tensor([-0.1, -0.2, -0.4, -0.2]))


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_a_token_without_a_usable_logprob_is_dropped_and_counted(bad):
    logprobs = np.array([np.nan, -0.5, bad, -0.5], np.float32)
    found = TokenBatch.from_batch(batch([row("paaa", behavior_logprobs=logprobs), row("pa")]))
    assert found.token_ids.tolist() == [11, 13, 11]
    assert found.dropped == 1
    assert found.sampled.tolist() == [3, 1]
    assert found.select([1]).dropped == 0
    assert found.select([0]).dropped == 1


@pytest.mark.parametrize(
    ("gone", "rewards", "expected"),
    [
        ([3], [0, 0.0, 0.5, 1.0], [0.0, 1.5]),  # the last: its reward goes back
        ([2], [0, 0.25, 0.5, 1.0], [0.75, 1.0]),  # the middle: to the token before it
        ([1], [0, 0.25, 0.5, 1.0], [0.75, 1.0]),  # the first: nothing is before it, so to the next one
        ([1, 2], [0, 0.25, 0.5, 1.0], [1.75]),
    ],
)
def test_the_reward_of_a_dropped_token_is_moved_and_the_sum_preserved(gone, rewards, expected):
    logprobs = np.array([np.nan, -0.5, -0.5, -0.5], np.float32)
    logprobs[gone] = np.nan
    found = TokenBatch.from_batch(
        batch([row("paaa", behavior_logprobs=logprobs, rewards=np.asarray(rewards, np.float32))])
    )
    assert found.rewards.tolist() == expected
    assert float(found.rewards.sum()) == sum(rewards)


def test_how_a_row_ended():
    rows = [row("pa", stop=reason) for reason in (StopReason.EOS, StopReason.ENV_DONE, StopReason.TRUNCATED)]
    found = TokenBatch.from_batch(batch(rows))
    assert found.truncated.tolist() == [False, False, True]
    assert not found.aborted.any()


def test_a_trajectory_with_an_aborted_row_has_no_tokens():
    rows = [row("paa"), row("pa", stop=StopReason.ABORTED), row("pa", trajectory=1)]
    found = TokenBatch.from_batch(batch(rows, trajectories=[0, 0, 1]))
    assert found.aborted.tolist() == [True, True, False]
    assert found.segments.lengths.tolist() == [0, 0, 1]
    assert found.sampled.tolist() == [0, 0, 1]
    assert found.dropped == 0


def test_optional_arrays_are_there_when_every_row_has_them():
    entropy = np.array([0, 0.5, 0.7], np.float32)
    with_it, without = row("paa", entropy=entropy), row("paa")
    torch.testing.assert_close(
        TokenBatch.from_batch(batch([with_it, with_it])).entropy, torch.tensor([0.5, 0.7, 0.5, 0.7])
    )
    assert TokenBatch.from_batch(batch([with_it, without])).entropy is None
    assert TokenBatch.from_batch(batch([without])).teacher_logprobs is None


def test_select_keeps_everything_of_its_rows_in_their_order():
    rows = [row("paa", version=1), row("pp"), row("poaa", version=2), row("pa", entropy=None)]
    whole = TokenBatch.from_batch(batch(rows, trajectories=[0, 1, 1, 2], groups=[0, 1, 1, 1], outcomes=[1, 2, 2, 4]))
    part = whole.select([2, 0])
    assert part.token_ids.tolist() == [12, 13, 11, 12]
    assert part.policy_version.tolist() == [2, 2, 1, 1]
    assert part.segments.lengths.tolist() == [2, 2]
    assert part.outcomes.tolist() == [2.0, 1.0]
    assert part.trajectory_of.tolist() == [1, 0]
    assert part.group_of.tolist() == [1, 0]
    assert part.last_input.tolist() == [3, 2]
    assert whole.select([]).segments.rows == 0
    everything = whole.select(range(4))
    assert torch.equal(everything.token_ids, whole.token_ids)
    assert torch.equal(everything.rewards, whole.rewards)


def test_an_empty_batch():
    found = TokenBatch.from_batch(batch([row("pp")]))
    assert (found.segments.rows, found.segments.tokens, len(found.rewards)) == (1, 0, 0)
