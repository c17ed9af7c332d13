"""Sampled tokens per second of the embedded engine against ``model.generate``, and against the floor.

    python bench/bench_engine.py [--model FOLDER] [--threads 1] [--repeats 3]

32 requests of unequal length are there at once: prompts of 16–128 tokens; answers log-normal as sampled ones are
(median 60, sigma 0.7, cut to 4–240), seeded. Both sides sample at temperature 1 in float32 from the same model with the
same threads.

* **engine**: a real engine process, asked over HTTP; its prefix cache is off, so that repeats do the same work.
* **generate**: Hugging Face ``generate`` on the left-padded batch, until the longest answer is done; only the tokens
  that were asked for count. Also in the better of two orders: sorted by answer length, in batches of 8 or 16.
* **floor**: what no engine that decodes them together can beat on this machine: every decoding step (as many as the
  longest answer) reads the weights once from memory; and does the layers' matrix products for the sequences that still
  run. Both are measured here; the larger counts. Prompts cost nothing in it.

The sides alternate, and the best of the repeats counts on each side.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import anyio
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
CASES = {
    "small": {
        "hidden_size": 128,
        "intermediate_size": 384,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "vocab_size": 64,
    },
    "medium": {
        "hidden_size": 512,
        "intermediate_size": 1536,
        "num_hidden_layers": 8,
        "num_attention_heads": 8,
        "num_key_value_heads": 2,
        "head_dim": 64,
        "vocab_size": 16384,
    },
    "smollm2_135m_shape": {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_attention_heads": 9,
        "num_key_value_heads": 3,
        "head_dim": 64,
        "vocab_size": 49152,
    },
}


def build(case: str, folder: Path) -> Path:
    """A random Qwen3 model of the case's size."""
    import torch
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    Qwen3ForCausalLM(Qwen3Config(**CASES[case], tie_word_embeddings=True, eos_token_id=None)).save_pretrained(folder)
    return folder


def workload(vocabulary: int) -> list[tuple[np.ndarray, int]]:
    """(prompt ids, answer length)."""
    draw = np.random.default_rng(0)
    return [
        (
            draw.integers(0, vocabulary, draw.integers(16, 129)).astype(np.int32),
            int(np.clip(draw.lognormal(np.log(60), 0.7), 4, 240)),
        )
        for _ in range(32)
    ]


async def engine_seconds(client, work) -> float:
    from windage.engines.protocol import GenerateRequest, Sampling

    requests = [
        GenerateRequest(request_id=f"b/{i}", prompt_ids=ids, sampling=Sampling(max_tokens=count, seed=i))
        for i, (ids, count) in enumerate(work)
    ]
    began = time.perf_counter()
    done = await client.generate(requests)
    seconds = time.perf_counter() - began
    assert [len(each.token_ids) for each in done] == [count for _, count in work]
    return seconds


def generate_seconds(model, work, *, batch: int) -> float:
    import torch

    ordered = sorted(work, key=lambda item: -item[1])
    began = time.perf_counter()
    for start in range(0, len(ordered), batch):
        part = ordered[start : start + batch]
        width = max(len(ids) for ids, _ in part)
        tokens = torch.zeros(len(part), width, dtype=torch.long)
        mask = torch.zeros_like(tokens)
        for row, (ids, _) in enumerate(part):
            tokens[row, width - len(ids) :] = torch.from_numpy(ids)
            mask[row, width - len(ids) :] = 1
        count = max(answer for _, answer in part)
        out = model.generate(
            tokens,
            attention_mask=mask,
            do_sample=True,
            top_k=0,
            max_new_tokens=count,
            pad_token_id=0,
            eos_token_id=None,
        )
        assert out.shape[1] == width + count
    return time.perf_counter() - began


def floor_seconds(model, work) -> dict[str, float]:
    """Memory: one pass over the weights a step. Compute: the products of all linear layers for the running rows."""
    import torch

    from windage.engines.embedded.packed_linear import PackedLinear

    steps = max(count for _, count in work)
    weights = [p for p in model.parameters() if p.ndim == 2]
    for _ in range(2):
        began = time.perf_counter()
        for weight in weights:
            weight.sum()
        read = time.perf_counter() - began
    products = [PackedLinear(weight, None, pack=pack) for weight in weights for pack in (True, False)]
    compute = 0.0
    running = [sum(count > step for _, count in work) for step in range(steps)]
    for rows in sorted(set(running)):
        inputs = {weight.shape[1]: torch.randn(rows, weight.shape[1]) for weight in weights}
        best = dict.fromkeys(("packed", "plain"), np.inf)
        for _ in range(3):
            for way, chosen in (("packed", products[::2]), ("plain", products[1::2])):
                began = time.perf_counter()
                for weight, product in zip(weights, chosen, strict=True):
                    product(inputs[weight.shape[1]])
                best[way] = min(best[way], time.perf_counter() - began)
        compute += min(best.values()) * running.count(rows)
    return {"memory": read * steps, "compute": compute}


async def measure(name: str, folder: Path, *, threads: int, repeats: int) -> dict:
    import torch
    from transformers import AutoModelForCausalLM

    from windage.engines.config import EngineConfig
    from windage.engines.embedded.launch import launch

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    work = workload(model.config.vocab_size)
    tokens = sum(count for _, count in work)
    config = EngineConfig(
        model=str(folder), dtype="float32", device="cpu", threads=threads, policy_version=0, prefix_cache=False
    )
    engine, generate = [], {32: [], 16: [], 8: []}
    with tempfile.TemporaryDirectory() as logs, torch.inference_mode():
        child, client = await launch(config, log=Path(logs) / "engine.log")
        try:
            short = [(ids, 2) for ids, _ in work]
            await engine_seconds(client, short)
            generate_seconds(model, short, batch=32)
            for _ in range(repeats):
                engine.append(await engine_seconds(client, work))
                for batch, seconds in generate.items():
                    seconds.append(generate_seconds(model, work, batch=batch))
        finally:
            await client.aclose()
            await child.stop()
        floor = floor_seconds(model, work)
    one_batch, best = min(generate[32]), min(min(seconds) for seconds in generate.values())
    return {
        "model": name,
        "parameters": sum(p.numel() for p in model.parameters()),
        "tokens": tokens,
        "engine_tokens_per_second": round(tokens / min(engine), 1),
        "generate_tokens_per_second": round(tokens / one_batch, 1),
        "generate_sorted_batches_tokens_per_second": round(tokens / best, 1),
        "speedup": round(one_batch / min(engine), 2),
        "speedup_over_best_generate": round(best / min(engine), 2),
        "floor_tokens_per_second": {key: round(tokens / value, 1) for key, value in floor.items()},
        "share_of_floor": round(max(floor.values()) / min(engine), 3),
        "seconds": {"engine": engine, **{f"generate_{batch}": seconds for batch, seconds in generate.items()}},
    }


def machine(threads: int) -> dict:
    import torch
    import transformers

    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    processor = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        names = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        processor = names[0].partition(":")[2].strip() if names else processor
    return {
        "processor": processor,
        "cores": os.cpu_count(),
        "threads": threads,
        "load_before": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "commit": commit.stdout.strip(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="folder of a model; otherwise the random ones of --cases")
    parser.add_argument("--cases", nargs="*", choices=CASES, default=["small", "medium"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "engine.json")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    import torch

    torch.set_num_threads(arguments.threads)
    report = {"machine": machine(arguments.threads), "results": []}
    with tempfile.TemporaryDirectory() as scratch:
        for name in [arguments.model.name] if arguments.model else arguments.cases:
            folder = arguments.model or build(name, Path(scratch) / name)
            result = anyio.run(
                lambda name=name, folder=folder: measure(
                    name, folder, threads=arguments.threads, repeats=1 if "135m" in name else arguments.repeats
                )
            )
            report["results"].append(result)
            arguments.out.parent.mkdir(parents=True, exist_ok=True)
            arguments.out.write_text(json.dumps(report, indent=1) + "\n")
            print(json.dumps({key: value for key, value in result.items() if key != "seconds"}, indent=1), flush=True)
    print(f"written to {arguments.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
