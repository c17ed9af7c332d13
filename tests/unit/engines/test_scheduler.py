"""The scheduler thread: swaps under load, refusals that hurt nobody, aborts, scores. No sleeps: futures tell."""

from __future__ import annotations

import threading
from concurrent.futures import Future

import numpy as np
import pytest
import torch
from tests.unit.engines.harness import Harness, ask, plain_logprobs, prompts, published, same

from windage.engines.config import EngineConfig
from windage.engines.embedded.model import ServedModel
from windage.engines.embedded.scheduler import EngineBusy, Scheduler
from windage.errors import EngineError

SECONDS = 60


class Gate:
    """Stops the scheduler's thread after a given number of sampled tokens, until the test lets it go on."""

    def __init__(self, tokens):
        self._left = tokens
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, generation):
        del generation
        self._left -= 1
        if self._left == 0:
            self.reached.set()
            assert self.open.wait(SECONDS)


@pytest.fixture
def start(qwen):
    started = []

    def make(**config):
        scheduler = Scheduler(ServedModel(EngineConfig(**{"model": str(qwen), "policy_version": 0, **config})))
        scheduler.start()
        started.append(scheduler)
        return scheduler

    yield make
    for scheduler in started:
        scheduler.stop()


def result(future: Future):
    return future.result(timeout=SECONDS)


def test_completions_come_in_the_order_of_the_requests(start, qwen):
    requests = [ask(row, f"r{i}", seed=i, max_tokens=3 + (7 * i) % 20) for i, row in enumerate(prompts(12))]
    done = result(start().submit(requests))
    assert [each.request_id for each in done] == [f"r{i}" for i in range(12)]
    expected = Harness(qwen).run(requests)
    assert all(same(a, b) for a, b in zip(done, expected, strict=True))


def test_an_empty_list(start):
    assert result(start().submit([])) == []


BAD = {
    "empty": (ask([]), "empty"),
    "negative": (ask([5, -1]), "outside the vocabulary"),
    "too large": (ask([5, 93]), "outside the vocabulary"),
    "2-D": (ask([[5, 6]]), "malformed"),
    "too long": (ask([5] * 500, max_tokens=13), "does not fit"),
    "routes": (ask([5], routes=True), "routes"),
    "empty stop": (ask([5], stop=("",)), "empty"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_request_is_refused_with_its_list_and_hurts_nobody(start, case):
    scheduler = start()
    request, words = BAD[case]
    gate = Gate(3)
    running = scheduler.submit([ask([5, 6, 7], max_tokens=10)], on_token=gate)
    assert gate.reached.wait(SECONDS)
    with pytest.raises(EngineError, match=words):
        scheduler.submit([ask([5, 6]), request])
    gate.open.set()
    assert len(result(running)[0].token_ids) == 10
    assert scheduler.status().waiting == 0


def test_the_longest_possible_request_is_served(start):
    assert len(result(start().submit([ask([5] * 500, max_tokens=12)]))[0].token_ids) == 12


def test_ids_in_flight_are_unique_and_free_again_afterwards(start):
    scheduler = start()
    gate = Gate(1)
    running = scheduler.submit([ask([5], "a")], on_token=gate)
    assert gate.reached.wait(SECONDS)
    with pytest.raises(EngineError, match="in use"):
        scheduler.submit([ask([6], "b"), ask([6], "a")])
    with pytest.raises(EngineError, match="in use"):
        scheduler.submit([ask([6], "b"), ask([6], "b")])
    gate.open.set()
    result(running)
    result(scheduler.submit([ask([6], "a")]))


def test_too_many_requests(start):
    scheduler = start(max_batch=1, max_waiting=2)
    with pytest.raises(EngineBusy):
        scheduler.submit([ask([5]) for _ in range(4)])
    assert len(result(scheduler.submit([ask([5]) for _ in range(3)]))) == 3


def test_abort(start):
    scheduler = start()
    gate = Gate(4)
    running = scheduler.submit([ask([5, 6], "a", max_tokens=400)], on_token=gate)
    assert gate.reached.wait(SECONDS)
    scheduler.abort(["a"])
    gate.open.set()
    done = result(running)[0]
    assert (done.finish_reason, len(done.token_ids)) == ("aborted", 4)
    status = scheduler.status()
    assert (status.running, status.waiting) == (0, 0)


def test_drain_lets_the_running_end_on_the_old_weights_and_the_waiting_start_on_the_new(start, qwen, tmp_path):
    folder = published(qwen, tmp_path / "v1", 1)
    scheduler = start()
    gate = Gate(3)
    running = scheduler.submit([ask([5, 6, 7], max_tokens=20)], on_token=gate)
    assert gate.reached.wait(SECONDS)
    scheduler.begin_update(1, str(folder))
    assert scheduler.status().policy_version == 0
    committed = scheduler.commit_update(1, running="drain")
    late = scheduler.submit([ask([5, 6, 7], max_tokens=5)])
    gate.open.set()
    assert set(result(running)[0].policy_version.tolist()) == {0}
    result(committed)
    assert set(result(late)[0].policy_version.tolist()) == {1}


@pytest.mark.parametrize("policy", ["recompute", "keep"])
def test_in_flight_swap(start, qwen, tmp_path, policy):
    folder = published(qwen, tmp_path / "v1", 1)
    scheduler = start()
    gate = Gate(3)
    running = scheduler.submit([ask([5, 6, 7], max_tokens=20)], on_token=gate)
    assert gate.reached.wait(SECONDS)
    scheduler.begin_update(1, str(folder))
    committed = scheduler.commit_update(1, running=policy)
    gate.open.set()
    result(committed)
    assert result(running)[0].policy_version.tolist() == [0] * 3 + [1] * 17
    assert scheduler.status().policy_version == 1


def test_versions_and_commits_in_the_wrong_order(start, qwen, tmp_path):
    scheduler = start()
    one, two = published(qwen, tmp_path / "v1", 1), published(qwen, tmp_path / "v2", 2, seed=2)
    first = scheduler.status().fingerprint
    with pytest.raises(EngineError, match="nothing staged"):
        scheduler.commit_update(1, running="drain")
    scheduler.begin_update(1, str(one))
    with pytest.raises(EngineError, match="version 1 staged"):
        scheduler.commit_update(2, running="drain")
    assert scheduler.status().fingerprint == first
    scheduler.begin_update(2, str(two))  # replaces what was staged
    result(scheduler.commit_update(2, running="drain"))
    status = scheduler.status()
    assert status.policy_version == 2
    assert status.fingerprint != first
    with pytest.raises(EngineError, match="backwards"):
        scheduler.begin_update(1, str(one))
    with pytest.raises(EngineError, match="nothing staged"):
        scheduler.commit_update(2, running="drain")


def test_a_failed_begin_leaves_the_old_weights_serving(start, qwen, tmp_path):
    folder = published(qwen, tmp_path / "v1", 1)
    (folder / "model.safetensors").unlink()
    scheduler = start()
    before = result(scheduler.submit([ask([5, 6, 7])]))[0]
    status = scheduler.status()
    with pytest.raises(EngineError, match="no weights"):
        scheduler.begin_update(1, str(folder))
    with pytest.raises(EngineError, match="nothing staged"):
        scheduler.commit_update(1, running="drain")
    after = result(scheduler.submit([ask([5, 6, 7])]))[0]
    assert after.token_ids.tolist() == before.token_ids.tolist()
    assert scheduler.status().fingerprint == status.fingerprint
    assert scheduler.status().policy_version == 0


def test_scores_under_load_and_refusals(start, qwen):
    scheduler = start()
    rows = [np.array(row, dtype=np.int32) for row in prompts(9, shortest=1)]
    running = scheduler.submit([ask([5, 6, 7], max_tokens=40)])
    scores = result(scheduler.score(rows, temperature=1.0))
    for row, got in zip(rows, scores, strict=True):
        np.testing.assert_allclose(got[1:], plain_logprobs(qwen, row), atol=2e-4)
    assert len(result(running)[0].token_ids) == 40
    assert result(scheduler.score([], temperature=1.0)) == []
    for bad, temperature in (([], 1.0), ([5], 0.0), ([93], 1.0), ([5] * 513, 1.0)):
        with pytest.raises(EngineError):
            scheduler.score([np.array(bad, dtype=np.int32)], temperature=temperature)


def test_a_cancelled_score_makes_room_for_the_next(start):
    scheduler = start()
    gate = Gate(1)
    running = scheduler.submit([ask([5], max_tokens=2)], on_token=gate)
    assert gate.reached.wait(SECONDS)
    dropped = scheduler.score([np.arange(5, 50)], temperature=1.0)
    kept = scheduler.score([np.arange(5, 50)], temperature=1.0)
    assert dropped.cancel()
    gate.open.set()
    assert len(result(kept)[0]) == 45
    result(running)


def test_one_score_is_of_one_version(qwen, tmp_path):
    """A swap between two chunks of a job would mix versions in one answer. The thread is this test, step by step."""
    folder = published(qwen, tmp_path / "v1", 1)
    scheduler = Scheduler(ServedModel(EngineConfig(model=str(qwen), policy_version=0, prefill_tokens=32)))
    rows = [np.array(row, dtype=np.int32) for row in prompts(3, shortest=30)]
    job = scheduler.score(rows, temperature=1.0)
    later = scheduler.score(rows, temperature=1.0)
    with torch.inference_mode():
        scheduler._obey()
        scheduler._work()
        scheduler.begin_update(1, str(folder))
        committed = scheduler.commit_update(1, running="drain")
        while not later.done():
            scheduler._obey()
            scheduler._work()
            assert committed.done() == job.done() or not committed.done()
    assert committed.done()
    for old, new, row in zip(job.result(), later.result(), rows, strict=True):
        np.testing.assert_allclose(old[1:], plain_logprobs(qwen, row), atol=2e-4)
        np.testing.assert_allclose(new[1:], plain_logprobs(folder, row), atol=2e-4)


def test_status_counts(start):
    scheduler = start()
    result(scheduler.submit([ask([5], max_tokens=7), ask([6], max_tokens=5)]))
    result(scheduler.score([np.arange(5, 50)], temperature=1.0))
    status = scheduler.status()
    assert status.tokens_generated == 12
    assert status.vocab_size == 93
    assert status.device == "cpu"
    assert status.busy_seconds > 0


def test_requests_without_a_seed_differ_and_repeat_from_the_engine_seed(start):
    def tokens(seed):
        done = result(start(seed=seed).submit([ask([5, 6], seed=None, max_tokens=30, temperature=3.0) for _ in "ab"]))
        return [each.token_ids.tolist() for each in done]

    assert tokens(1) == tokens(1)
    assert tokens(1) != tokens(2)
    assert tokens(1)[0] != tokens(1)[1]
