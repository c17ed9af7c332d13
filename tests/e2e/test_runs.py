"""Whole runs through the command line: modes agree, kills lose nothing, Ctrl-C leaves nobody behind."""

from __future__ import annotations

import os
import signal

import numpy as np
import psutil
import pytest
from tests.e2e.runs import (
    assert_ledger_closes,
    assert_no_orphans,
    child,
    finish,
    lines,
    metrics,
    recipe,
    start,
    summary,
    until_batches,
    weights,
    windage,
)

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]

LAGGED = "{name: lagged, k: 2}"


def assert_same_weights(one, other):
    first, second = weights(one), weights(other)
    assert first.keys() == second.keys()
    for name, tensor in first.items():
        np.testing.assert_array_equal(tensor, second[name], err_msg=name)


@pytest.fixture(scope="module")
def straight(tmp_path_factory):
    """Six batches of lagged(2) without any interruption, in processes that compile every kernel themselves.

    The runs that are compared with it load the kernels from disk: both must give the same bits.
    """
    folder = tmp_path_factory.mktemp("straight")
    arguments = ("train", recipe(folder, steps=6, mode=LAGGED), "--run-dir", folder / "run", "--quiet")
    windage(*arguments, NUMBA_CACHE_DIR=str(folder / "kernels"))
    return folder / "run"


def test_a_run_leaves_a_complete_folder(straight):
    found = summary(straight)
    for key in ("mode", "algorithm", "steps", "eval_before", "eval_after", "tokens_generated", "tokens_trained"):
        assert found[key] is not None, key
    assert found["mode"] == "lagged"
    assert found["algorithm"] == "copc"
    assert found["staleness_max"] == found["staleness_bound"] == 2
    assert 0 < found["tokens_trained"] <= found["tokens_generated"]
    assert found["seconds"] > 0
    assert_ledger_closes(straight, steps=6)
    report = (straight / "report.html").read_text()
    assert "<svg" in report
    assert "http://" not in report.replace("http://www.w3.org", "")
    assert (straight / "config.yaml").exists()


def test_lagged_means_exactly_k_versions(straight):
    assert [line["staleness/mean"] for line in metrics(straight)] == [0, 1, 2, 2, 2, 2]
    assert [line["staleness/max"] for line in metrics(straight)] == [0, 1, 2, 2, 2, 2]


def test_killed_controller_resumes_to_the_same_bits(straight, tmp_path):
    run = tmp_path / "run"
    process = start("train", recipe(tmp_path, steps=6, mode=LAGGED), "--run-dir", run)
    until_batches(run, 3, process)
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.communicate()
    assert_no_orphans(children)
    assert lines(run) < 6, "the kill came too late to prove anything"
    windage("resume", run)
    assert_ledger_closes(run, steps=6)
    assert_same_weights(straight, run)
    ours, theirs = metrics(run), metrics(straight)
    for name in ("batch/reward", "learner/loss", "learner/kl", "staleness/mean"):
        assert [line[name] for line in ours] == [line[name] for line in theirs], name
    assert summary(run)["eval_after"] == summary(straight)["eval_after"]


def test_killed_learner_stops_the_run_and_resume_goes_on(straight, tmp_path):
    run = tmp_path / "run"
    process = start("train", recipe(tmp_path, steps=6, mode=LAGGED), "--run-dir", run)
    until_batches(run, 1, process)
    os.kill(child(process, "windage.learner").pid, signal.SIGKILL)
    children = psutil.Process(process.pid).children(recursive=True)
    code, output = finish(process)
    assert code == 1, output
    assert "learner" in output
    assert "SIGKILL" in output
    assert f"windage resume {run}" in output
    assert_no_orphans(children)
    windage("resume", run)
    assert_ledger_closes(run, steps=6)
    assert_same_weights(straight, run)


def test_killed_engine_is_replaced_and_the_run_does_not_notice(straight, tmp_path):
    run = tmp_path / "run"
    process = start("train", recipe(tmp_path, steps=6, mode=LAGGED), "--run-dir", run)
    until_batches(run, 1, process)
    os.kill(child(process, "windage.engines.embedded").pid, signal.SIGKILL)
    code, output = finish(process)
    assert code == 0, output
    assert "restarting" in output
    assert_ledger_closes(run, steps=6)
    assert_same_weights(straight, run)


def test_sync_lagged_zero_and_async_zero_train_the_same_numbers(tmp_path):
    modes = {
        "sync": "{name: sync}",
        "lagged": "{name: lagged, k: 0}",
        "async": "{name: async, staleness: 0}",
    }
    for name, mode in modes.items():
        folder = tmp_path / name
        folder.mkdir()
        windage("train", recipe(folder, steps=3, mode=mode, tasks=0), "--run-dir", folder / "run", "--quiet")
        assert_ledger_closes(folder / "run", steps=3)
        assert summary(folder / "run")["staleness_max"] == 0
    for name in ("lagged", "async"):
        assert_same_weights(tmp_path / "sync" / "run", tmp_path / name / "run")


def test_async_run_killed_twice_trains_every_task_once(tmp_path):
    run = tmp_path / "run"
    process = start("train", recipe(tmp_path, steps=6, tasks=0, checkpoint=4), "--run-dir", run)
    until_batches(run, 2, process)
    process.kill()
    process.communicate()
    process = start("resume", run)
    until_batches(run, min(lines(run) + 1, 5), process)
    process.kill()
    process.communicate()
    windage("resume", run)
    assert_ledger_closes(run, steps=6)
    assert summary(run)["staleness_max"] <= summary(run)["staleness_bound"]
    output = windage("resume", run)
    assert_ledger_closes(run, steps=6)
    assert "redoing" not in output


def test_ctrl_c_stops_everything_and_says_how_to_go_on(tmp_path):
    run = tmp_path / "run"
    process = start("train", recipe(tmp_path, steps=500, tasks=0), "--run-dir", run)
    until_batches(run, 1, process)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) >= 2
    process.send_signal(signal.SIGINT)
    code, output = finish(process, seconds=60)
    assert code == 130, output
    assert f"windage resume {run}" in output
    assert "Traceback" not in output
    assert_no_orphans(children)


def test_two_trainers_cannot_share_a_folder(tmp_path):
    run = tmp_path / "run"
    process = start("train", recipe(tmp_path, steps=500, tasks=0), "--run-dir", run)
    until_batches(run, 1, process)
    code, output = finish(start("resume", run), seconds=60)
    process.send_signal(signal.SIGINT)
    finish(process, seconds=60)
    assert code == 1
    assert "in use by another trainer" in output


@pytest.mark.parametrize(
    "algorithm", ["ppo", "vtrace", "sao", "areal", "grpo", "dapo", "copc_no_recompute", "copc_no_mask"]
)
def test_every_algorithm_trains(algorithm, tmp_path):
    run = tmp_path / "run"
    windage("train", recipe(tmp_path, steps=2, algorithm=algorithm, tasks=0), "--run-dir", run, "--quiet")
    assert_ledger_closes(run, steps=2)
    assert sum(line["outcome/updated"] for line in metrics(run)[-1:]) >= 1


def test_eval_and_doctor_work_on_a_finished_run(straight, tmp_path):
    output = windage("eval", straight, "evaluation.tasks=4")
    assert '"episodes": 4' in output
    output = windage("doctor", recipe(tmp_path, steps=2))
    assert "mismatch at lag 0" in output
    assert "good" in output
    assert "prefix-preserving" in output or "no episode had a second turn" in output
