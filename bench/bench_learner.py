"""Trained tokens per second and peak memory of the learner against TRL's GRPOTrainer: same model, rows, threads.

    python bench/bench_learner.py --trl-python /path/to/venv/bin/python

TRL needs an environment of its own that also sees this one's packages:
``python -m venv trl && trl/bin/pip install trl==1.16.0``. Nothing is installed here.

Both sides train the same rows with GRPO's loss (clip 0.2, mean over tokens then rows, no reference model) and AdamW in
fp32, without recomputing activations. TRL gets the rows ready made (its generation is switched off) and is timed by its
own step callbacks, at several micro-batch sizes; its best one counts. Each measurement is a process of its own; the two
sides alternate. ``speedup`` compares wall time, ``speedup_cpu`` processor time, which
other work on a shared machine does not disturb.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
GROUP = 8
LAYERS, TYPICAL, LONGEST = 4, 60, 240
CASES = {
    "small_vocabulary": {
        "hidden": 128,
        "layers": 4,
        "intermediate": 384,
        "vocab": 64,
        "rows": 64,
        "mean": 60,
        "cap": 240,
    },
    "large_vocabulary": {
        "hidden": 192,
        "layers": 4,
        "intermediate": 512,
        "vocab": 16384,
        "rows": 32,
        "mean": 60,
        "cap": 240,
    },
}


def make_rows(case: dict, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """(prompt, completion, advantage): completion lengths are log-normal, as sampled answers are."""
    random = np.random.default_rng(seed)
    rows = []
    for index in range(case["rows"]):
        prompt = np.random.default_rng(index // GROUP).integers(8, 48)
        length = int(np.clip(random.lognormal(np.log(TYPICAL), 0.7), 4, LONGEST))
        ids = random.integers(5, case["vocab"], prompt + length)
        rows.append((ids[:prompt], ids[prompt:], (1.0, -1.0)[index % 2]))
    return rows


def build_model(case: dict, folder: Path) -> None:
    sys.path.insert(0, str(HERE.parents[1]))
    import torch
    from tests.models import char_tokenizer
    from transformers import Qwen3Config, Qwen3ForCausalLM

    torch.manual_seed(0)
    tokenizer = char_tokenizer()
    tokenizer.add_tokens([f"<t{index}>" for index in range(case["vocab"] - len(tokenizer))])
    config = Qwen3Config(
        vocab_size=max(case["vocab"], len(tokenizer)),
        hidden_size=case["hidden"],
        intermediate_size=case["intermediate"],
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=case["hidden"] // 4,
        tie_word_embeddings=True,
        max_position_embeddings=1024,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    Qwen3ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run_windage(case: dict, folder: Path, micro: int, steps: int) -> dict:
    from windage.learner.config import LearnerConfig
    from windage.learner.numbers import fix_numbers
    from windage.learner.service import Service
    from windage.learner.setup import LearnerSetup
    from windage.records import MicroBatch, Row, StopReason, TrainBatch

    learner = LearnerConfig(device="cpu", threads=int(os.environ["OMP_NUM_THREADS"]), lr=1e-6)
    fix_numbers(learner)
    service = Service(
        LearnerSetup(
            learner=learner,
            model={"name": "path", "path": str(folder)},
            algorithm={"name": "grpo"},
            publish_folder=str(folder / "versions"),
        )
    )
    rows = []
    for index, (prompt, completion, advantage) in enumerate(make_rows(case)):
        mask = np.arange(len(prompt) + len(completion)) >= len(prompt)
        rewards = np.zeros(len(mask), dtype=np.float32)
        rewards[-1] = advantage
        rows.append(
            Row(
                row_id=str(index),
                trajectory_id=str(index),
                group_id=str(index // GROUP),
                token_ids=np.concatenate([prompt, completion]).astype(np.int32),
                action_mask=mask,
                behavior_logprobs=np.where(mask, -1.0, np.nan).astype(np.float32),
                policy_version=np.where(mask, 0, -1).astype(np.int32),
                rewards=rewards,
                turn_ids=np.where(mask, 0, -1).astype(np.int32),
                stop_reason=StopReason.EOS,
            )
        )
    cut = [tuple(range(start, min(start + micro, len(rows)))) for start in range(0, len(rows), micro)]
    base = peak()
    seconds, cpu = [], []
    for step in range(steps):
        batch = TrainBatch(
            step=step,
            version=0,
            rows=tuple(rows),
            rewards=np.array([row.rewards.sum() for row in rows], dtype=np.float32),
            staleness=np.zeros(len(rows), dtype=np.int32),
            trajectory_of=np.arange(len(rows), dtype=np.int32),
            group_of=np.arange(len(rows), dtype=np.int32) // GROUP,
            micro_batches=tuple(MicroBatch(rows=part, tokens=sum(len(rows[i]) for i in part)) for part in cut),
            group_ids=tuple(str(index) for index in range(len(rows) // GROUP)),
        )
        start, busy = time.perf_counter(), time.process_time()
        report = service.train(batch)
        seconds.append(time.perf_counter() - start)
        cpu.append(time.process_time() - busy)
        assert report.outcome == "updated", report.reason
    return {"seconds": seconds, "cpu_seconds": cpu, "peak": peak(), "growth": peak() - base}


def run_trl(case: dict, folder: Path, micro: int, steps: int) -> dict:
    import torch
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    tokenizer = AutoTokenizer.from_pretrained(folder)
    rows = make_rows(case)

    def padded(side: int, *, left: bool) -> tuple[torch.Tensor, torch.Tensor]:
        width = max(len(row[side]) for row in rows)
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        mask = torch.zeros_like(ids)
        for index, row in enumerate(rows):
            part = slice(width - len(row[side]), width) if left else slice(0, len(row[side]))
            ids[index, part] = torch.tensor(row[side])
            mask[index, part] = 1
        return ids, mask

    prompt_ids, prompt_mask = padded(0, left=True)
    completion_ids, completion_mask = padded(1, left=False)

    class Ready(GRPOTrainer):
        def _generate_and_score_completions(self, inputs):
            return {
                "prompt_ids": prompt_ids,
                "prompt_mask": prompt_mask,
                "completion_ids": completion_ids,
                "completion_mask": completion_mask,
                "advantages": torch.tensor([row[2] for row in rows]),
                "num_items_in_batch": completion_mask.sum(),
            }

    seconds: list[float] = []
    cpu: list[float] = []

    class Watch(TrainerCallback):
        def on_step_begin(self, *arguments, **settings):
            self.start, self.busy = time.perf_counter(), time.process_time()

        def on_step_end(self, *arguments, **settings):
            seconds.append(time.perf_counter() - self.start)
            cpu.append(time.process_time() - self.busy)

    trainer = Ready(
        model=AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="sdpa"),
        processing_class=tokenizer,
        reward_funcs=lambda completions, **rest: [0.0] * len(completions),
        train_dataset=Dataset.from_dict({"prompt": ["1"] * len(rows)}),
        args=GRPOConfig(
            output_dir=str(folder / "trl"),
            per_device_train_batch_size=micro,
            gradient_accumulation_steps=len(rows) // micro,
            num_generations=GROUP,
            max_steps=steps,
            learning_rate=1e-6,
            beta=0.0,
            loss_type="grpo",
            gradient_checkpointing=False,
            use_cpu=True,
            bf16=False,
            report_to=[],
            save_strategy="no",
            logging_steps=1000,
            disable_tqdm=True,
        ),
        callbacks=[Watch()],
    )
    base = peak()
    trainer.train()
    return {"seconds": seconds, "cpu_seconds": cpu, "peak": peak(), "growth": peak() - base}


def measure(python: str, side: str, case: str, folder: Path, micro: int, steps: int, threads: int) -> dict:
    command = [python, str(HERE), "--side", side, "--case", case, "--folder", str(folder)]
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "PASSIVE",
        "PYTHONPATH": os.pathsep.join([str(HERE.parents[1] / "src"), os.environ.get("PYTHONPATH", "")]),
        "HF_HUB_OFFLINE": "1",
    }
    out = subprocess.run(
        [*command, "--micro", str(micro), "--steps", str(steps)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    if out.returncode:
        raise SystemExit(f"{side} failed:\n{out.stderr[-3000:]}")
    return {"side": side, "micro": micro, **json.loads(out.stdout.splitlines()[-1])}


def compare(case: str, arguments: argparse.Namespace) -> dict:
    settings = CASES[case]
    tokens = sum(len(row[1]) for row in make_rows(settings))
    inputs = tokens + sum(len(row[0]) for row in make_rows(settings))
    runs = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        build_model(settings, folder)
        for _ in range(arguments.repeats):
            for micro in arguments.micros:
                for side, python in (("windage", sys.executable), ("trl", arguments.trl_python)):
                    runs.append(measure(python, side, case, folder, micro, arguments.steps, arguments.threads))
                    last = runs[-1]
                    speed = tokens / float(np.median(last["cpu_seconds"][1:]))
                    print(
                        f"{case} {side:8} micro {micro:3}: {speed:8.0f} tokens/CPU-s, {last['growth'] / 2**20:6.0f} MiB"
                    )
    best: dict[str, dict] = {}
    for side in ("windage", "trl"):
        for micro in arguments.micros:
            mine = [run for run in runs if run["side"] == side and run["micro"] == micro]
            found = {
                "micro": micro,
                "tokens_per_second": tokens / float(np.median([s for run in mine for s in run["seconds"][1:]])),
                "tokens_per_cpu_second": tokens / float(np.median([s for run in mine for s in run["cpu_seconds"][1:]])),
                "peak_bytes": min(run["peak"] for run in mine),
                "growth_bytes": min(run["growth"] for run in mine),
            }
            if side not in best or found["tokens_per_cpu_second"] > best[side]["tokens_per_cpu_second"]:
                best[side] = found
    return {
        "settings": settings,
        "action_tokens": tokens,
        "input_tokens": inputs,
        "best": best,
        "speedup": best["windage"]["tokens_per_second"] / best["trl"]["tokens_per_second"],
        "speedup_cpu": best["windage"]["tokens_per_cpu_second"] / best["trl"]["tokens_per_cpu_second"],
        "memory_ratio": best["windage"]["growth_bytes"] / best["trl"]["growth_bytes"],
        "runs": runs,
    }


def commit() -> str:
    out = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=True, cwd=HERE.parent)
    return out.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trl-python", default=sys.executable, help="interpreter of an environment with trl")
    parser.add_argument("--cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--micros", nargs="+", type=int, default=[8, 32], help="rows in a micro-batch")
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE.parent / "results" / "learner.json")
    parser.add_argument("--side", choices=["windage", "trl"], help=argparse.SUPPRESS)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--micro", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        run = {"windage": run_windage, "trl": run_trl}[arguments.side]
        print(json.dumps(run(CASES[arguments.case], arguments.folder, arguments.micro, arguments.steps)))
        return
    revision = commit()
    results = {case: compare(case, arguments) for case in arguments.cases}
    for case, result in results.items():
        print(
            f"{case}: {result['speedup']:.2f}x the tokens/s of TRL ({result['speedup_cpu']:.2f}x a CPU second), "
            f"{result['memory_ratio']:.2f}x its memory growth"
        )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    machine = {"cpus": os.cpu_count(), "machine": platform.machine(), "python": platform.python_version()}
    versions = subprocess.run(
        [
            arguments.trl_python,
            "-c",
            "import torch, transformers, trl; print(torch.__version__, transformers.__version__, trl.__version__)",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    arguments.out.write_text(
        json.dumps(
            {
                "commit": revision,
                "date": datetime.now(UTC).isoformat(timespec="seconds"),
                "machine": machine,
                "threads": arguments.threads,
                "versions": dict(zip(("torch", "transformers", "trl"), versions, strict=False)),
                "results": results,
            },
            indent=1,
        )
        + "\n"
    )


if __name__ == "__main__":
    main()
