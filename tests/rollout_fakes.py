"""A scripted engine and environment for rollout tests, and tokenizer folders with two kinds of chat template."""

from __future__ import annotations

import json
from collections.abc import Sequence

import anyio
import numpy as np
import trio
import trio.testing

from windage.engines.protocol import Completion
from windage.environments.protocol import Message, StepResult
from windage.records import Lease, Task

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FORGETFUL = (  # drops what earlier replies thought, as reasoning models' templates do
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n"
    "{% if m['role'] == 'assistant' and not loop.last %}{{ m['content'].split('</think>')[-1] }}"
    "{% else %}{{ m['content'] }}{% endif %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def save_byte_tokenizer(folder, template):
    """A byte-level tokenizer with ChatML's special tokens."""
    from tokenizers import Tokenizer
    from tokenizers.decoders import ByteLevel as ByteLevelDecoder
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel

    alphabet = {character: index for index, character in enumerate(sorted(ByteLevel.alphabet()))}
    tokenizer = Tokenizer(BPE(vocab=alphabet, merges=[]))
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>", "<|endoftext|>"])
    folder.mkdir(parents=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "<|im_end|>"}}))
    (folder / "chat_template.jinja").write_text(template)
    return folder


class ScriptedEngine:
    """Says ``replies[(member, turn)]`` (text, ids, or an exception to raise) after ``seconds``."""

    def __init__(self, tokenizer, replies, *, version=3, seconds=0.0):
        self.tokenizer, self.replies, self.version, self.seconds = tokenizer, replies, version, seconds
        self.requests = []
        self.lists = []

    async def generate(self, requests):
        self.lists.append([request.request_id for request in requests])
        self.requests += requests
        if self.seconds:
            await anyio.sleep(self.seconds)
        return [self._complete(request) for request in requests]

    def _complete(self, request):
        _, member, turn = request.request_id.split("/")
        said = self.replies[int(member), int(turn.partition("~")[0])]
        if isinstance(said, list) and said and not isinstance(said[0], int):
            said = said.pop(0)  # one entry an attempt
        if isinstance(said, Exception):
            raise said
        ids = self.tokenizer.encode(said) if isinstance(said, str) else said
        finish = "stop"
        if len(ids) > request.sampling.max_tokens:
            ids, finish = ids[: request.sampling.max_tokens], "length"
        count = len(ids)
        return Completion(
            request_id=request.request_id,
            token_ids=np.array(ids, np.int32),
            logprobs=-0.1 * np.arange(1, count + 1, dtype=np.float32),
            policy_version=np.full(count, self.version, np.int32),
            finish_reason=finish,
            entropy=np.full(count, 0.5, np.float32) if request.sampling.entropy else None,
        )


class ScriptedEnvironment:
    """Opens with ``opening``; answers replies with ``answers`` (raises, calls, or sleeps when they are such)."""

    def __init__(self, factory):
        self.factory = factory
        self.answers = list(factory.answers)
        self.closed = 0
        self.replies = []

    async def reset(self, task):
        return (Message(role="user", content=self.factory.opening),)

    async def step(self, reply):
        self.replies.append(reply)
        answer = self.answers.pop(0) if self.answers else StepResult(done=True)
        if callable(answer):
            return answer(reply)
        if isinstance(answer, float):
            await anyio.sleep(answer)
            return StepResult(done=True)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def close(self):
        self.closed += 1
        if self.factory.close_error is not None:
            raise self.factory.close_error


class ScriptedFactory:
    name = "scripted"

    def __init__(self, answers=(), *, opening="1+1?", stop=(">",)):
        self.answers, self.opening, self.stop = answers, opening, stop
        self.made = []
        self.close_error = None

    def make(self):
        self.made.append(ScriptedEnvironment(self))
        return self.made[-1]

    def demonstrations(self, count, *, seed):
        return []

    def tools(self) -> Sequence:
        return ()

    async def aclose(self):
        return None


def lease(members=1, *, group="g0", attempt=0, position=0, seed=11):
    task = Task(task_id=group, source="scripted", group_size=members, seed=seed)
    return Lease(task=task, group_id=group, position=position, attempt=attempt)


def play(scenario):
    """Run under trio's mock clock; a deadlock fails instead of hanging."""
    answer = []

    async def bounded():
        with anyio.fail_after(100_000):
            answer.append(await scenario())

    trio.run(bounded, clock=trio.testing.MockClock(autojump_threshold=0))
    return answer[0]
