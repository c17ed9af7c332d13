"""Real runs of the command line, small enough for a test: one layer, one-digit sums."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import psutil

RECIPE = """
name: tiny
steps: {steps}
groups_per_step: 4
mode: {mode}
model: {{name: qwen3_random, hidden: 64, layers: 1, heads: 2, kv_heads: 1, intermediate: 128}}
algorithm: {{name: {algorithm}}}
environment:
  name: tool_math
  direct_share: 0.5
  sources: [{{name: arithmetic, operators: "+", min_digits: 1, max_digits: 1}}]
rollout: {{group_size: {members}, max_turns: 2, max_tokens: 8, max_context: 64}}
learner:
  lr: 0.001
  threads: 1
{critic}  warm_start: {{lr: 0.01}}
engine: {{threads: 1}}
warm_start: {{steps: 80, demonstrations: 2000}}
evaluation: {{tasks: {tasks}, every: {every}}}
checkpoint: {{every: {checkpoint}}}
tracking: {{tensorboard: false}}
"""


def recipe(
    folder: Path, *, steps=4, mode="{name: async, staleness: 1}", algorithm="copc", tasks=8, every=0, checkpoint=2
) -> Path:
    path = folder / "tiny.yaml"
    critic = "" if algorithm in ("grpo", "dapo") else "  critic: {lr: 0.001, warmup: 0, updates: 1}\n"
    path.write_text(
        RECIPE.format(
            steps=steps,
            mode=mode,
            algorithm=algorithm,
            critic=critic,
            members=2 if critic else 4,  # without a critic, four groups of equal rewards move nothing
            tasks=tasks,
            every=every,
            checkpoint=checkpoint,
        )
    )
    return path


def start(*arguments: str | Path, **environment: str) -> subprocess.Popen[str]:
    """``windage …`` in a session of its own, output captured."""
    return subprocess.Popen(
        [sys.executable, "-m", "windage.cli.main", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )


def finish(process: subprocess.Popen[str], *, seconds=240) -> tuple[int, str]:
    output, _ = process.communicate(timeout=seconds)
    return process.returncode, output


def windage(*arguments: str | Path, seconds=240, **environment: str) -> str:
    """Run to the end; the output of a run that must succeed."""
    code, output = finish(start(*arguments, **environment), seconds=seconds)
    assert code == 0, output
    return output


def until_batches(run: Path, count: int, process: subprocess.Popen[str], *, seconds=200) -> None:
    """Return once ``count`` batches have their line in metrics.jsonl."""
    deadline = time.monotonic() + seconds
    while lines(run) < count:
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, f"only {lines(run)} batches in {seconds} s"
        time.sleep(0.02)  # polls a file that another process writes


def lines(run: Path) -> int:
    path = run / "metrics.jsonl"
    return path.read_text().count("\n") if path.exists() else 0


def child(process: subprocess.Popen[str], module: str) -> psutil.Process:
    """The engine or learner of a running controller."""
    for candidate in psutil.Process(process.pid).children(recursive=True):
        if module in candidate.cmdline():
            return candidate
    raise AssertionError(f"no {module} under {process.pid}")


def assert_no_orphans(children: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(children, timeout=15)
    assert not alive, f"orphans: {[(c.pid, c.cmdline()) for c in alive if c.is_running()]}"


def summary(run: Path) -> dict:
    return json.loads((run / "summary.json").read_text())


def metrics(run: Path) -> list[dict]:
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def assert_ledger_closes(run: Path, *, steps: int, groups: int = 4) -> None:
    """Every task trained exactly once; nothing in flight, nothing left over."""
    ledger = summary(run)["ledger"]
    lost = ledger["failed"] + ledger["expired"] + ledger["rejected"]
    assert ledger["admitted"] == ledger["trained"] + ledger["waiting"] + ledger["in_flight"] + lost
    assert ledger["trained"] == steps * groups
    assert ledger["waiting"] == ledger["in_flight"] == 0
    with closing(sqlite3.connect(run / "store.sqlite")) as store:
        rows = store.execute("SELECT batch, COUNT(*) FROM groups WHERE batch IS NOT NULL GROUP BY batch").fetchall()
    assert rows == [(step, groups) for step in range(steps)]
    assert [line["step"] for line in metrics(run)] == list(range(steps))


def weights(run: Path) -> dict:
    """Policy and critic of the last checkpoint."""
    from safetensors.numpy import load_file

    newest = max((run / "checkpoints").glob("batch-*"))
    return {
        f"{file.stem}/{name}": tensor
        for file in sorted(newest.glob("*.safetensors"))
        for name, tensor in load_file(file).items()
    }
