"""Drive an engine's batcher without threads or HTTP, and an oracle that is plain Hugging Face."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import torch
from tests.models import perturb

from windage.engines.config import EngineConfig
from windage.engines.embedded.batcher import Batcher
from windage.engines.embedded.generation import Generation
from windage.engines.embedded.model import ServedModel
from windage.engines.embedded.stop_strings import StopStrings
from windage.engines.protocol import GenerateRequest, Sampling

_names = itertools.count()


def ask(prompt, name=None, **sampling):
    """A request for ``prompt`` (ids); 8 tokens unless told otherwise."""
    sampling = {"max_tokens": 8, "seed": 0, **sampling}
    return GenerateRequest(
        request_id=name or f"r{next(_names)}",
        prompt_ids=np.asarray(prompt, dtype=np.int32),
        sampling=Sampling(**sampling),
    )


def prompts(count, *, shortest=3, step=5, words=80, seed=0):
    """Random prompts of unequal length."""
    draw = np.random.default_rng(seed)
    return [draw.integers(5, words, size=shortest + step * (i % 7)).tolist() for i in range(count)]


class Harness:
    """A served model and its batcher, stepped by hand."""

    def __init__(self, folder, **config):
        torch.set_num_threads(1)
        self.model = ServedModel(EngineConfig(**{"model": str(folder), "policy_version": 0, **config}))
        self.batcher = Batcher(self.model)
        self.done = {}

    def submit(self, requests):
        for request in requests:
            stops = None
            if request.sampling.stop:
                stops = StopStrings(request.sampling.stop, decode=self.model.decode, text_of=self.model.text_of)
            self.batcher.waiting.append(
                Generation(request=request, seed=request.sampling.seed, on_done=self._keep, stop_strings=stops)
            )

    def step(self, times=1):
        with torch.inference_mode():
            for _ in range(times):
                self.batcher.step()

    def run(self, requests):
        """All completions, in order."""
        self.submit(requests)
        while self.batcher.busy:
            self.step()
        return [self.done.pop(request.request_id) for request in requests]

    def _keep(self, generation):
        self.done[generation.request.request_id] = generation.completion()


def plain_logprobs(folder, ids, *, temperature=1.0, words=None):
    """Hugging Face's own forward: log-prob of ids[1:], float64 softmax over the first ``words`` ids."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([list(ids)])).logits[0, :-1, :words].double() / temperature
    return torch.log_softmax(logits, -1).gather(1, torch.tensor(list(ids)[1:])[:, None])[:, 0].numpy()


def published(source: Path, target: Path, version: int, *, seed=1, size=0.05):
    """A committed version folder with other weights."""
    perturb(source, target, seed=seed, size=size)
    (target / "COMMITTED").write_text(json.dumps({"version": version, "fingerprint": "unused"}))
    return target


def same(left, right):
    """Bit-identical completions, names apart."""
    return (
        left.token_ids.tolist() == right.token_ids.tolist()
        and left.logprobs.tobytes() == right.logprobs.tobytes()
        and left.policy_version.tolist() == right.policy_version.tolist()
        and left.finish_reason == right.finish_reason
    )
