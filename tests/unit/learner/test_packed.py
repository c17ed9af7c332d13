"""Every layout gives the single row's log-probs (trap 49); rows never see each other."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.models import SHAPES, tiny_model, vocabulary
from transformers import AutoModelForCausalLM

from windage.learner.attention import rows_of
from windage.learner.config import LearnerConfig
from windage.learner.forward import hidden_states
from windage.learner.model import load_policy
from windage.learner.packed import pack
from windage.learner.self_check import check_packing


def make_policy(folder, **config):
    config = LearnerConfig(device="cpu", **config)
    return load_policy(folder, config=config, limit=vocabulary(folder), temperature=1.0, trust=False)


def packed_logprobs(policy, rows):
    packed = pack(rows)
    with torch.no_grad(), rows_of(packed):
        hidden = hidden_states(policy, packed)
        logprobs, _ = policy.logprobs(hidden[:-1], packed.token_ids[1:])
    ends = packed.offsets[1:-1] - 1
    keep = torch.ones(len(logprobs), dtype=torch.bool)
    keep[ends] = False
    return logprobs[keep]


def plain_logprobs(folder, rows):
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    found = []
    for row in rows:
        ids = torch.tensor(row)[None]
        with torch.no_grad():
            logprobs = torch.log_softmax(model(ids).logits[0].double(), -1)
        found.append(logprobs[:-1].gather(1, ids[0, 1:, None])[:, 0])
    return torch.cat(found)


def random_rows(lengths, vocab, seed=0):
    random = np.random.default_rng(seed)
    return [random.integers(0, vocab, length).astype(np.int32) for length in lengths]


@pytest.mark.parametrize("shape", SHAPES)
def test_packed_rows_give_the_single_rows_logprobs(tmp_path, shape):
    folder = tiny_model(tmp_path / shape, shape)
    policy = make_policy(folder)
    check_packing(policy)
    rows = random_rows([40, 1, 7, 33, 2, 90, 64], vocabulary(folder))
    got, want = packed_logprobs(policy, rows), plain_logprobs(folder, rows)
    torch.testing.assert_close(got.double(), want, atol=1e-5, rtol=1e-5)


def test_gradient_of_a_row_does_not_depend_on_its_neighbours(tmp_path):
    policy = make_policy(tiny_model(tmp_path / "m"))
    rows = random_rows([30, 12, 50], policy.limit)

    def gradient(chosen, first, count):
        policy.hf.zero_grad()
        packed = pack(chosen)
        with rows_of(packed):
            hidden = hidden_states(policy, packed)[first : first + count - 1]
            policy.logprobs(hidden, packed.token_ids[first + 1 : first + count])[0].sum().backward()
        return torch.cat([p.grad.flatten() for _, p in policy.trainable])

    alone, beside = gradient(rows[1:2], 0, 12), gradient(rows, 30, 12)
    torch.testing.assert_close(beside, alone, atol=1e-5, rtol=1e-4)


def test_gradient_checkpointing_changes_nothing(tmp_path):
    folder = tiny_model(tmp_path / "m")
    rows = random_rows([30, 12, 50], 80)
    found = []
    for checkpointing in (False, True):
        policy = make_policy(folder, gradient_checkpointing=checkpointing)
        packed = pack(rows)
        with rows_of(packed):
            policy.logprobs(hidden_states(policy, packed)[:-1], packed.token_ids[1:])[0].sum().backward()
        found.append(torch.cat([p.grad.flatten() for _, p in policy.trainable]))
    torch.testing.assert_close(found[1], found[0], atol=1e-6, rtol=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 120), min_size=1, max_size=12))
def test_every_token_comes_back_to_its_place(lengths):
    packed = pack(random_rows(lengths, 50))
    marks = torch.arange(packed.tokens)
    joined = torch.cat([marks[group.take][group.valid] for group in packed.groups])
    assert joined[packed.restore].tolist() == marks.tolist()
    assert packed.positions.tolist() == [place for length in lengths for place in range(length)]
    assert sum(group.rows * group.width for group in packed.groups) <= max(1.34 * sum(lengths), 24 * len(lengths))


@pytest.mark.parametrize("rows", [[], [np.array([], dtype=np.int32)]])
def test_nothing_to_pack_is_refused(rows):
    with pytest.raises(ValueError, match="at least one token"):
        pack(rows)
