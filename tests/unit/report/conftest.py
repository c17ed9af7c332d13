"""A realistic run folder, made of numbers only (no model ran): for the report and its screenshots."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

CONFIG = """name: quickstart
seed: 0
steps: {steps}
groups_per_step: 16
mode:
  name: async
  staleness: 2
algorithm:
  name: copc
model:
  path: tiny <qwen3>
"""


def metric_line(step: int, steps: int, rng: random.Random) -> dict:
    skill = 0.42 + 0.52 / (1 + math.exp(-(step - 0.35 * steps) / (0.1 * steps)))
    lags = [0.0] * 20
    for _ in range(128):
        lags[min(3, max(0, round(rng.gauss(min(step, 2), 0.5))))] += 1
    mean = sum(i * n for i, n in enumerate(lags)) / 128
    return {
        "step": step,
        "version": step + 1,
        "batch/reward": skill + rng.gauss(0, 0.05),
        "rollout/success": min(1.0, skill + rng.gauss(0, 0.05)),
        "batch/rows": 128,
        "staleness/mean": mean,
        "staleness/max": max(i for i, n in enumerate(lags) if n),
        "staleness/bound": 3,
        "staleness/histogram": {"edges": [*map(float, range(17)), 24.0, 32.0, 48.0, 64.0][:21], "counts": lags},
        "queue/admitted": 16 * (step + 3),
        "queue/trained": 16 * (step + 1),
        "queue/waiting": rng.randint(2, 14),
        "queue/in_flight": 20,
        "queue/failed": 0,
        "queue/expired": 0,
        "queue/rejected": 0,
        "time/wait": abs(rng.gauss(0.3, 0.1)),
        "time/train": abs(rng.gauss(1.4, 0.1)),
        "time/publish": 0.08,
        "time/step": 2.1,
        "time/evaluate": 1.2 if step % 20 == 19 else 0.0,
        "speed/engine_tokens": 3100 + rng.gauss(0, 200),
        "speed/learner_tokens": 2600 + rng.gauss(0, 150),
        "tokens/generated": 3000 * (step + 1),
        "tokens/trained": 2800 * (step + 1),
        "outcome/skipped": 0,
        "learner/loss": rng.gauss(0.0, 0.02),
        "learner/kl": abs(rng.gauss(0.02, 0.004)) * (1 + step / steps),
        "learner/ess": 0.94 - 0.1 * step / steps + rng.gauss(0, 0.01),
        "learner/mismatch_lag0_p50": 1e-6,
        "learner/mismatch_stale_p99": abs(rng.gauss(0.2, 0.05)),
        "learner/log_trace_p50": -0.1 * (step + 1) / steps,
        "learner/histogram/log_trace": {
            "edges": [-5, -4, -3, -2, -1, -0.5, 0, 0.5, 1, 2, 3, 4, 5],
            "counts": [0, 0, 1, 5, 20, 40, 300, 60, 20, 5, 1, 0],
        },
        "learner/masked_below": 0.03 * step / steps,
        "learner/kappa_at_low": 0.12 * step / steps,
        "learner/entropy": 0.6 * math.exp(-2 * step / steps),
        "learner/grad_norm": abs(rng.gauss(0.7, 0.2)),
        "learner/critic_loss": 0.1 * math.exp(-step / 20) + 0.02,
        "learner/explained_variance": 1 - math.exp(-step / 25),
    }


def write_run(folder: Path, *, steps: int = 120, finished: bool = True) -> Path:
    """Write a run of ``steps`` batches; an unfinished one has no summary and a torn last line."""
    rng = random.Random(7)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text(CONFIG.format(steps=steps))
    lines = [metric_line(step, steps, rng) for step in range(steps if finished else steps // 2)]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text if finished else text + '{"step": 60, "batch/rew')
    evaluations = [
        {"step": step, "eval/success": share, "eval/success_low": share - 0.06, "eval/success_high": share + 0.04}
        for step, share in zip(range(0, steps + 1, 20), (0.43, 0.5, 0.66, 0.84, 0.91, 0.94, 0.95), strict=False)
    ]
    (folder / "evaluations.jsonl").write_text("".join(json.dumps(line) + "\n" for line in evaluations))
    sample = {
        "step": steps,
        "task_id": "arith-17",
        "reward": 1.0,
        "stop_reason": "env_done",
        "tokens": 21,
        "segments": [
            {"text": "Q: is 12*7 < 100?\n", "action": False},
            {"text": "<calc>12*7</calc>", "action": True},
            {"text": "\n=84\n", "action": False},
            {"text": "A: yes", "action": True},
        ],
    }
    (folder / "samples.jsonl").write_text(json.dumps(sample) + "\n")
    if finished:
        counts = {"admitted": 16 * steps + 9, "trained": 16 * steps, "waiting": 5, "in_flight": 0}
        ledger = {**counts, "failed": 4, "expired": 0, "rejected": 0}
        summary = {
            "mode": "async",
            "algorithm": "copc",
            "steps": steps,
            "eval_before": 0.43,
            "eval_after": 0.95,
            "staleness_max": 3,
            "staleness_bound": 3,
            "ledger": ledger,
            "tokens_generated": 3000 * steps,
            "tokens_trained": 2800 * steps,
            "seconds": 252.0,
            "machine": "Linux x86_64, 2 cores",
        }
        (folder / "summary.json").write_text(json.dumps(summary))
    return folder


@pytest.fixture
def finished_run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "quickstart-20261201-093005")


@pytest.fixture
def unfinished_run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "half", finished=False)
