"""Milliseconds of ``returns.copc`` on 1 M ragged tokens against a padded loop over time steps in torch, one thread.

    python bench/bench_returns.py [--tokens 1000000] [--repeats 7]

Row lengths are log-normal as those of sampled episodes are (median 1200, sigma 0.9, cut to 16 384), seeded.

* **windage**: ``returns.copc`` on the 1-D arrays: exponential, clip, residuals, both chains.
* **padded_loop**: the same formula on padded ``[rows, longest]`` arrays, column by column from the end, with a mask, as
  trainers with padded batches do. Padding is already there: building it is not counted.
* **padded_loop_time_major**: the same with ``[longest, rows]`` arrays, so that a time step is contiguous.
* **gae**: ``returns.gae`` on the same arrays: what asynchronous PPO pays for its credit. ``copc_over_gae_ms`` is what
  COPC adds to a step that has entry log-probs anyway; it is also given as a share of a step of ``--step`` seconds.

The sides alternate, the best of the repeats counts, and both answers are compared before anything is timed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch

from windage.returns import copc, gae
from windage.segments import Segments

ROOT = Path(__file__).resolve().parents[1]
CLIP = (0.8, 1.2)


def ragged(tokens, seed=0):
    """Row lengths that sum to ``tokens``, and one array of each kind."""
    random = np.random.default_rng(seed)
    lengths = []
    while sum(lengths) < tokens:
        lengths.append(int(np.clip(random.lognormal(np.log(1200), 0.9), 1, 16384)))
    lengths[-1] -= sum(lengths) - tokens
    generator = torch.Generator().manual_seed(seed)
    segments = Segments.from_lengths(lengths)
    rewards = torch.zeros(tokens)
    rewards[segments.offsets[1:] - 1] = torch.randint(0, 2, (len(lengths),), generator=generator).float()
    values = torch.rand(tokens, generator=generator)
    log_ratio = 0.02 * torch.randn(tokens, generator=generator) - 0.02**2 / 2
    return segments, rewards, values, log_ratio


def padded(segments, flat):
    grid = torch.zeros(segments.rows, segments.longest)
    grid[segments.row_of, segments.position] = flat
    return grid


def loop(rewards, values, log_ratio, mask, *, gamma=1.0, lam=1.0):
    """Padded arrays, batch first: one column a step."""
    kappa = log_ratio.exp().clamp(*CLIP)
    rows, steps = values.shape
    advantages, errors = torch.zeros_like(values), torch.zeros_like(values)
    next_value, carry = torch.zeros(rows), torch.zeros(rows)
    for t in reversed(range(steps)):
        here = mask[:, t]
        advantage = rewards[:, t] + gamma * next_value - values[:, t] + gamma * lam * carry
        error = kappa[:, t] * advantage
        advantages[:, t] = advantage * here
        errors[:, t] = error * here
        next_value = torch.where(here > 0, values[:, t], next_value)
        carry = torch.where(here > 0, error, carry)
    return advantages, values + errors


def loop_time_major(rewards, values, log_ratio, mask, *, gamma=1.0, lam=1.0):
    kappa = log_ratio.exp().clamp(*CLIP)
    steps, rows = values.shape
    advantages, errors = torch.zeros_like(values), torch.zeros_like(values)
    next_value, carry = torch.zeros(rows), torch.zeros(rows)
    for t in reversed(range(steps)):
        here = mask[t]
        advantage = rewards[t] + gamma * next_value - values[t] + gamma * lam * carry
        error = kappa[t] * advantage
        advantages[t] = advantage * here
        errors[t] = error * here
        next_value = torch.where(here > 0, values[t], next_value)
        carry = torch.where(here > 0, error, carry)
    return advantages, values + errors


def best(calls, repeats):
    """Fewest seconds of each call; they take turns."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            found[name] = min(found[name], time.perf_counter() - start)
    return found


def commit():
    answer = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or "unknown"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--step", type=float, default=60.0, help="seconds of a training step on that many tokens")
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/returns.json")
    given = parser.parse_args()
    torch.set_num_threads(1)
    segments, rewards, values, log_ratio = ragged(given.tokens)
    flat = {"rewards": rewards, "values": values, "segments": segments}
    grids = [padded(segments, array) for array in (rewards, values, log_ratio, torch.ones_like(rewards))]
    columns = [grid.T.contiguous() for grid in grids]
    credit = copc(**flat, log_ratio=log_ratio, clip=CLIP)
    advantages, returns = loop(*grids)
    inside = (segments.row_of, segments.position)
    apart = max(
        float(((ours - theirs[inside]).abs() / (1 + ours.abs())).max())
        for ours, theirs in ((credit.advantages, advantages), (credit.returns, returns))
    )
    assert apart < 1e-3, apart
    seconds = best(
        {
            "windage": lambda: copc(**flat, log_ratio=log_ratio, clip=CLIP),
            "gae": lambda: gae(**flat),
            "padded_loop": lambda: loop(*grids),
            "padded_loop_time_major": lambda: loop_time_major(*columns),
        },
        given.repeats,
    )
    extra = seconds["windage"] - seconds["gae"]
    result = {
        "benchmark": "returns",
        "tokens": segments.tokens,
        "rows": segments.rows,
        "longest": segments.longest,
        "milliseconds": {name: round(1000 * value, 3) for name, value in seconds.items()},
        "speedup": round(seconds["padded_loop"] / seconds["windage"], 1),
        "speedup_time_major": round(seconds["padded_loop_time_major"] / seconds["windage"], 1),
        "largest_relative_difference": apart,
        "copc_over_gae_ms": round(1000 * extra, 3),
        "copc_over_gae_share_of_step": extra / given.step,
        "step_seconds_assumed": given.step,
        "threads": torch.get_num_threads(),
        "repeats": given.repeats,
        "machine": {
            "cpu": _cpu(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    print(json.dumps(result, indent=2))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=2) + "\n")


def _cpu():
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )


if __name__ == "__main__":
    main()
