"""Rows: whatever an episode does, sampled tokens are the actions, sums of rewards are kept, and the rest is context."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windage.engines.protocol import Completion
from windage.records import StopReason
from windage.rollout.rows import RowBuilder

TOKENS = st.lists(st.integers(0, 99), min_size=1, max_size=6)
TURNS = st.lists(
    st.tuples(TOKENS, st.integers(0, 5), st.integers(-8, 8), st.lists(st.integers(0, 99), max_size=4), st.booleans()),
    min_size=1,
    max_size=5,
)


def completion(ids, version, *, entropy=False, routes=None):
    count = len(ids)
    return Completion(
        request_id="g/0/0",
        token_ids=np.array(ids, np.int32),
        logprobs=-np.arange(1, count + 1, dtype=np.float32),
        policy_version=np.full(count, version, np.int32),
        finish_reason="stop",
        entropy=np.full(count, 0.5, np.float32) if entropy else None,
        routes=routes,
    )


def built(builder):
    return builder.build(row_id="r", trajectory_id="t", group_id="g", stop_reason=StopReason.EOS)


@given(prompt=TOKENS, turns=TURNS)
def test_every_token_is_an_action_or_context_and_nothing_is_lost(prompt, turns):
    builder = RowBuilder(prompt)
    expected = [(token, None) for token in prompt]
    total = 0.0
    for turn, (said, version, reward, observed, entropy) in enumerate(turns):
        start, stop = builder.sampled(completion(said, version, entropy=entropy), turn=turn)
        assert builder.token_ids[start:stop] == said
        if turn % 2:  # before or after the observation: the same action earns it
            builder.observed(observed)
            builder.reward(reward)
        else:
            builder.reward(reward)
            builder.observed(observed)
        total += reward
        expected += [(token, (turn, version, -float(place + 1))) for place, token in enumerate(said)]
        expected += [(token, None) for token in observed]
    row = built(builder)
    assert row.token_ids.tolist() == [token for token, _ in expected]
    for place, (_, action) in enumerate(expected):
        assert bool(row.action_mask[place]) is (action is not None)
        if action is None:
            assert np.isnan(row.behavior_logprobs[place])
            assert (row.turn_ids[place], row.policy_version[place], row.rewards[place]) == (-1, -1, 0.0)
        else:
            assert (row.turn_ids[place], row.policy_version[place], row.behavior_logprobs[place]) == action
    assert row.rewards.sum() == total
    assert builder.actions == row.action_tokens == sum(len(said) for said, *_ in turns)
    assert (row.entropy is not None) == any(entropy for *_, entropy in turns)


def test_a_reward_goes_to_the_last_action_of_its_turn():
    builder = RowBuilder([1, 2])
    builder.sampled(completion([3, 4], 0), turn=0)
    builder.reward(0.5)
    builder.observed([5, 6])
    builder.reward(0.25)
    builder.sampled(completion([7], 1), turn=1)
    builder.reward(1.0)
    assert built(builder).rewards.tolist() == [0, 0, 0, 0.75, 0, 0, 1.0]


def test_no_action_no_reward():
    with pytest.raises(ValueError, match="before the first action"):
        RowBuilder([1]).reward(1.0)


def test_routes_of_the_last_call_cover_the_row_and_the_rest_is_marked_missing():
    """2 layers, 1 expert a token; the engine never computes the last sampled token."""
    builder = RowBuilder([1, 2])
    builder.sampled(completion([3, 4], 0, routes=np.zeros((2, 3, 1), np.uint8)), turn=0)
    builder.observed([5])
    builder.sampled(completion([6], 0, routes=np.ones((2, 5, 1), np.uint8)), turn=1)
    routes = built(builder).routes
    assert routes.shape == (2, 6, 1)
    assert (routes[:, :5] == 1).all()
    assert (routes[:, 5] == 255).all()
