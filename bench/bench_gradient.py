"""How well each algorithm's expected update points along the true policy gradient, as rollouts grow stale. No sampling.

    python bench/bench_gradient.py [--tasks 12]

Every sequence of 5 tokens over 3 words is enumerated; a task is a random reward for each of them. The sampling policy μ
is a random table of logits, the current policy π is μ plus normal noise in the logits. The critic knows V^μ exactly, as
a critic trained on stale rollouts would. An algorithm's expected update is the sum over all sequences, weighted by μ,
of the gradient of its loss; the figure is its cosine with the gradient of E_π[R], averaged over tasks. Advantages are
not whitened. GRPO and DAPO see the exact mean and deviation of R under μ, which is a group without end.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from windage import algorithms
from windage.returns import Credit
from windage.segments import Segments
from windage.tokens import TokenBatch

ROOT = Path(__file__).resolve().parents[1]
WORDS, STEPS = 3, 5
SEQUENCES = list(itertools.product(range(WORDS), repeat=STEPS))
PREFIXES = {
    prefix: i for i, prefix in enumerate(p for n in range(STEPS) for p in itertools.product(range(WORDS), repeat=n))
}
STATES = torch.tensor([[PREFIXES[s[:t]] for t in range(STEPS)] for s in SEQUENCES])
ACTIONS = torch.tensor(SEQUENCES)
NOISES = (0.1, 0.3, 0.8, 1.5)


def token_logprobs(logits):
    return logits.log_softmax(-1)[STATES, ACTIONS]


def values_of(logits, reward):
    """V of each prefix under the policy."""
    probabilities, found = logits.softmax(-1), {s: float(reward[i]) for i, s in enumerate(SEQUENCES)}
    for prefix in sorted(PREFIXES, key=len, reverse=True):
        found[prefix] = sum(float(probabilities[PREFIXES[prefix], a]) * found[(*prefix, a)] for a in range(WORDS))
    return torch.tensor([found[s[:t]] for s in SEQUENCES for t in range(STEPS)])


def token_batch(behavior, reward):
    rows, tokens = len(SEQUENCES), len(SEQUENCES) * STEPS
    zeros, row = torch.zeros(tokens, dtype=torch.int64), torch.arange(rows)
    rewards = torch.zeros(rows, STEPS)
    rewards[:, -1] = reward
    return TokenBatch(
        segments=Segments.from_lengths([STEPS] * rows),
        token_ids=ACTIONS.flatten(),
        behavior_logprobs=behavior,
        policy_version=zeros,
        staleness=zeros + 1,
        rewards=rewards.flatten(),
        turn_ids=zeros,
        predict_at=zeros,
        outcomes=reward,
        group_of=row,
        trajectory_of=row,
        truncated=row < 0,
        aborted=row < 0,
        last_input=row,
        sampled=torch.full((rows,), STEPS),
    )


def cosine(algorithm, mu, pi, reward):
    behavior = token_logprobs(mu)
    weight = behavior.sum(1).exp()
    batch = token_batch(behavior.flatten(), reward)
    pi = pi.clone().requires_grad_()
    logprobs = token_logprobs(pi).flatten()
    entry = logprobs.detach()
    if algorithm.critic:
        credit = algorithm.credit(
            batch, entry_logprobs=entry, values=values_of(mu, reward), bootstrap=torch.zeros(len(weight))
        )
    else:
        mean = (weight * reward).sum()
        deviation = (weight * (reward - mean).square()).sum().sqrt()
        credit = Credit(advantages=batch.segments.expand((reward - mean) / deviation))
    loss = algorithm.loss(batch, logprobs=logprobs, entry_logprobs=entry, advantages=credit.advantages)
    (update,) = torch.autograd.grad((loss * batch.segments.expand(weight)).sum(), pi)
    expected = (token_logprobs(pi).sum(1).exp() * reward).sum()
    (truth,) = torch.autograd.grad(expected, pi)
    return float(torch.nn.functional.cosine_similarity(-update.flatten(), truth.flatten(), dim=0))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tasks", type=int, default=12)
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results/gradient.json")
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for name in algorithms.names():
        plain = {"whiten": False} if algorithms.lookup(name).critic else {}
        algorithm, found[name] = algorithms.get(name, **plain), {}
        for noise in NOISES:
            total = 0.0
            for task in range(given.tasks):
                generator = torch.Generator().manual_seed(task)
                mu = torch.randn(len(PREFIXES), WORDS, generator=generator)
                pi = mu + noise * torch.randn(mu.shape, generator=generator)
                total += cosine(algorithm, mu, pi, torch.rand(len(SEQUENCES), generator=generator))
            found[name][str(noise)] = round(total / given.tasks, 3)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    result = {
        "benchmark": "gradient",
        "cosine_by_noise": found,
        "tasks": given.tasks,
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "torch": torch.__version__},
        "commit": commit.stdout.strip() or "unknown",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    print(json.dumps(result, indent=2))
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
