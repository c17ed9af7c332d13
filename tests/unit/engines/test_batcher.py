"""Continuous batching: what a request gets does not depend on its company, and the same calls give the same bits."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.unit.engines.harness import Harness, ask, plain_logprobs, prompts, published, same

from windage.engines.embedded.weights import stage, swap


def wave(count=12, **sampling):
    return [
        ask(row, f"w{i}", seed=100 + i, max_tokens=4 + 3 * (i % 5), **sampling) for i, row in enumerate(prompts(count))
    ]


def test_tokens_do_not_depend_on_company(qwen):
    requests = wave()
    together = Harness(qwen).run(requests)
    alone = [Harness(qwen).run([request])[0] for request in requests]
    few = Harness(qwen, max_batch=2, prefill_tokens=5, prefix_cache=False).run(requests)
    for a, b, c in zip(together, alone, few, strict=True):
        assert a.token_ids.tolist() == b.token_ids.tolist() == c.token_ids.tolist()
        np.testing.assert_allclose(a.logprobs, b.logprobs, atol=1e-4)


def test_a_wave_is_bit_identical_in_a_fresh_engine(qwen):
    first, second = Harness(qwen).run(wave()), Harness(qwen).run(wave())
    assert all(same(a, b) for a, b in zip(first, second, strict=True))


def test_without_retention_history_does_not_matter(qwen):
    """retained=0: a wave into an idle engine is a function of the wave alone."""
    harness = Harness(qwen, retained=0)
    harness.run([ask([9, *range(20, 60)], max_tokens=20), *wave(5)])
    shared = [ask([9, *range(20, 50 + i)], seed=i) for i in range(6)]
    used = harness.run(shared)
    fresh = Harness(qwen, retained=0).run(shared)
    assert all(same(a, b) for a, b in zip(used, fresh, strict=True))


def test_after_a_swap_history_does_not_matter(qwen, tmp_path):
    folder = published(qwen, tmp_path / "v1", 1)
    used, fresh = Harness(qwen), Harness(qwen)
    used.run(wave())
    for harness in (used, fresh):
        swap(harness.model.hf, stage(harness.model.hf, 1, str(folder)))
        harness.model.refresh()
        harness.batcher.swapped(1, "drain")
    for a, b in zip(used.run(wave()), fresh.run(wave()), strict=True):
        assert same(a, b)
        assert set(a.policy_version.tolist()) == {1}


def test_siblings_compute_their_prompt_once(qwen):
    harness = Harness(qwen)
    prompt = list(range(5, 65))
    done = harness.run([ask(prompt, seed=i, max_tokens=6) for i in range(8)])
    assert harness.batcher.table.tokens_reused == 7 * 59  # the last prompt token is always computed: its logits are
    plain = Harness(qwen, prefix_cache=False).run([ask(prompt, seed=i, max_tokens=6) for i in range(8)])
    for a, b in zip(done, plain, strict=True):
        assert a.token_ids.tolist() == b.token_ids.tolist()
        np.testing.assert_allclose(a.logprobs, b.logprobs, atol=1e-4)


def test_next_turn_reuses_the_history(qwen):
    harness = Harness(qwen)
    prompt = list(range(5, 45))
    first = harness.run([ask(prompt, max_tokens=10)])[0]
    longer = [*prompt, *first.token_ids.tolist(), 30, 31, 32]
    before = harness.batcher.table.tokens_reused
    second = harness.run([ask(longer, max_tokens=5)])[0]
    assert harness.batcher.table.tokens_reused - before == 40 + 9  # the last sampled token was never computed
    expected = plain_logprobs(qwen, [*longer, *second.token_ids.tolist()])[len(longer) - 1 :]
    np.testing.assert_allclose(second.logprobs, expected, atol=1e-4)


def test_small_cache_makes_requests_wait_not_fail(qwen):
    requests = [ask(row, seed=i, max_tokens=20) for i, row in enumerate(prompts(10))]
    tight = Harness(qwen, max_context=64, kv_tokens=130)
    done = tight.run(requests)
    assert max(len(d.token_ids) for d in done) == 20
    roomy = Harness(qwen).run(requests)
    assert [d.token_ids.tolist() for d in done] == [d.token_ids.tolist() for d in roomy]


def test_greedy_is_the_argmax_with_logprob_zero(qwen):
    done = Harness(qwen).run([ask([5, 6, 7], temperature=0.0, max_tokens=12, entropy=True)])[0]
    assert done.logprobs.tolist() == [0.0] * 12
    assert done.entropy.tolist() == [0.0] * 12
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(qwen).eval()
    expected = model.generate(torch.tensor([[5, 6, 7]]), do_sample=False, max_new_tokens=12, eos_token_id=None)
    assert done.token_ids.tolist() == expected[0, 3:].tolist()


def test_stop_id_is_kept_and_ends(qwen):
    free = Harness(qwen).run([ask([5, 6, 7], max_tokens=30)])[0]
    stop = int(free.token_ids[11])
    place = free.token_ids.tolist().index(stop)
    done = Harness(qwen).run([ask([5, 6, 7], max_tokens=30, stop_token_ids=(stop,))])[0]
    assert done.finish_reason == "stop"
    assert done.token_ids.tolist() == free.token_ids.tolist()[: place + 1]
    assert len(done.logprobs) == len(done.policy_version) == place + 1


def test_stop_string_ends_at_the_token_that_completes_it(qwen):
    harness = Harness(qwen)
    free = harness.run([ask([5, 6, 7], max_tokens=30)])[0]
    text = harness.model.decode(free.token_ids.tolist())
    visible = [harness.model.text_of(t) for t in free.token_ids.tolist()]
    stop = "".join(visible[9:12])
    count = next(n for n in range(1, 31) if stop in "".join(visible[:n]))
    done = harness.run([ask([5, 6, 7], max_tokens=30, stop=(stop, "never to be seen"))])[0]
    assert stop in text
    assert done.finish_reason == "stop"
    assert done.token_ids.tolist() == free.token_ids.tolist()[:count]


def test_length(qwen):
    done = Harness(qwen).run([ask([5], max_tokens=1)])[0]
    assert (done.finish_reason, len(done.token_ids)) == ("length", 1)


def test_abort_keeps_what_was_sampled_and_frees_the_place(qwen):
    harness = Harness(qwen, max_batch=2)
    harness.submit([ask([5, 6], "a", max_tokens=50), ask([7, 8], "b", max_tokens=50), ask([9], "c", max_tokens=50)])
    harness.step(5)
    harness.batcher.abort(["a", "c", "unknown"])
    assert harness.done["a"].finish_reason == "aborted"
    assert len(harness.done["a"].token_ids) == 5
    assert len(harness.done["c"].token_ids) == 0
    assert [g.request.request_id for g in harness.batcher.running] == ["b"]
    while harness.batcher.busy:
        harness.step()
    assert len(harness.done["b"].token_ids) == 50


@pytest.mark.parametrize("policy", ["recompute", "keep"])
def test_swap_in_mid_generation_stamps_each_token(qwen, tmp_path, policy):
    folder = published(qwen, tmp_path / "v1", 1)
    harness = Harness(qwen)
    ended = harness.run([ask(list(range(40, 70)), max_tokens=4)])[0]  # its cache is retained
    harness.submit([ask(list(range(5, 30)), "a", max_tokens=12)])
    harness.step(5)
    swap(harness.model.hf, stage(harness.model.hf, 1, str(folder)))
    harness.model.refresh()
    harness.batcher.swapped(1, policy)
    history = [*range(40, 70), *ended.token_ids.tolist(), 7]
    after = harness.run([ask(history, max_tokens=1)])[0]
    expected = plain_logprobs(folder, [*history, *after.token_ids.tolist()])[-1:]
    np.testing.assert_allclose(after.logprobs, expected, atol=1e-4)
    done = harness.done["a"]
    assert done.policy_version.tolist() == [0] * 5 + [1] * 7
    whole = [*range(5, 30), *done.token_ids.tolist()]
    old, new = plain_logprobs(qwen, whole)[24:], plain_logprobs(folder, whole)[24:]
    np.testing.assert_allclose(done.logprobs[:5], old[:5], atol=1e-4)
    gap = np.abs(done.logprobs[5:] - new[5:]).max()
    assert gap < 1e-4 if policy == "recompute" else gap > 1e-3  # keep mixes old keys with new weights
    # A kept cache is never handed on.
    again = harness.run([ask(whole, max_tokens=1)])[0]
    expected = plain_logprobs(folder, [*whole, *again.token_ids.tolist()])[-1:]
    np.testing.assert_allclose(again.logprobs, expected, atol=1e-4)


@pytest.mark.parametrize("shape", ["qwen3_moe", "mixtral"])
def test_routes_are_those_of_the_router(model_folder, shape):
    folder = model_folder(shape)
    harness = Harness(folder, routes=True, prefill_tokens=16)
    prompt = list(range(5, 45))
    requests = [ask(prompt, seed=i, max_tokens=5, routes=True) for i in range(3)]
    for request, done in zip(requests, harness.run(requests), strict=True):
        assert done.routes.shape == (2, 40 + 4, 2)
        assert done.routes.dtype == np.uint8
        expected = router_choice(folder, [*request.prompt_ids.tolist(), *done.token_ids.tolist()[:-1]])
        assert (np.sort(done.routes, -1) == np.sort(expected, -1)).mean() > 0.99
    # The next turn takes over the cached history and its routes.
    longer = [*prompt, *done.token_ids.tolist(), 30]
    more = harness.run([ask(longer, max_tokens=3, routes=True)])[0]
    assert more.routes.shape == (2, len(longer) + 2, 2)
    expected = router_choice(folder, [*longer, *more.token_ids.tolist()[:-1]])
    assert (np.sort(more.routes, -1) == np.sort(expected, -1)).mean() > 0.99


def router_choice(folder, ids):
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.inference_mode():
        out = model(input_ids=torch.tensor([ids]), output_router_logits=True)
    return torch.stack([layer.topk(2, -1).indices for layer in out.router_logits]).numpy()
