"""``/v1/models``, ``/v1/completions`` and ``/v1/chat/completions``: one job of prompts × n completions each."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from jinja2 import TemplateError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from windage.engines.embedded.door import as_ids
from windage.engines.embedded.generation import Generation
from windage.engines.embedded.hang_up import hang_up, until_done
from windage.engines.embedded.model import ServedModel
from windage.engines.embedded.openai_api.bodies import ChatBody, CompletionBody, parse
from windage.engines.embedded.openai_api.replies import (
    capture,
    chat_logprobs,
    completion_logprobs,
    finish_word,
    usage,
)
from windage.engines.embedded.openai_api.text_writer import TextWriter, before_stop
from windage.engines.embedded.openai_api.tool_calls import OPENING, split_tool_calls
from windage.engines.embedded.scheduler import Scheduler
from windage.engines.protocol import Completion, GenerateRequest
from windage.errors import EngineError, explain

__all__ = ["OpenAIRoutes"]

Kind = Literal["chat.completion", "text_completion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    reply_id: str
    kind: Kind
    body: ChatBody | CompletionBody
    requests: list[GenerateRequest]
    tools: bool

    @property
    def names(self) -> list[str]:
        return [request.request_id for request in self.requests]

    @property
    def prompt_tokens(self) -> int:
        return sum(len(request.prompt_ids) for request in self.requests[:: self.body.copies])


@dataclass(frozen=True, slots=True)
class _Token:
    index: int
    token: int
    logprob: float
    version: int


class OpenAIRoutes:
    """Handlers over one model and its scheduler."""

    def __init__(self, model: ServedModel, scheduler: Scheduler) -> None:
        self._model = model
        self._scheduler = scheduler
        self._names = {model.config.name or model.folder.name, model.config.model}
        self._count = itertools.count()
        self._created = int(time.time())

    def routes(self) -> list[Route]:
        """The routes, for the application."""
        return [
            Route("/v1/models", self.models, methods=["GET"]),
            Route("/v1/completions", self.completions, methods=["POST"]),
            Route("/v1/chat/completions", self.chat, methods=["POST"]),
        ]

    async def models(self, request: Request) -> Response:
        """The one model, with the policy version it serves."""
        del request
        name = self._model.config.name or self._model.folder.name
        entry = {
            "id": name,
            "object": "model",
            "created": self._created,
            "owned_by": "windage",
            "max_model_len": self._model.context,
            "policy_version": self._scheduler.status().policy_version,
        }
        return JSONResponse({"object": "list", "data": [entry]})

    async def completions(self, request: Request) -> Response:
        """Continue text or ids."""
        body = parse(CompletionBody, await request.body())
        prompts = [prompt if isinstance(prompt, list) else self._encode(prompt) for prompt in body.prompts]
        limit = 16 if body.max_tokens is None else body.max_tokens
        return await self._answer(request, self._job("text_completion", body, prompts, limit, tools=False))

    async def chat(self, request: Request) -> Response:
        """Continue a conversation, rendered by the model's chat template."""
        body = parse(ChatBody, await request.body())
        prompt = self._render(body)
        limit = max(1, self._model.context - len(prompt)) if body.limit is None else body.limit
        job = self._job("chat.completion", body, [prompt], limit, tools=body.offered_tools is not None)
        return await self._answer(request, job)

    def _job(
        self, kind: Kind, body: ChatBody | CompletionBody, prompts: list[list[int]], limit: int, *, tools: bool
    ) -> _Job:
        if body.model not in self._names:
            raise EngineError(explain("no such model", got=body.model, expected=" or ".join(sorted(self._names))))
        reply_id = f"{'chatcmpl' if kind == 'chat.completion' else 'cmpl'}-{self._created}-{next(self._count)}"
        requests = [
            GenerateRequest(
                request_id=f"{reply_id}/{place * body.copies + copy}",
                prompt_ids=as_ids(prompt, limit=self._model.limit),
                sampling=body.sampling(limit, self._model.eos_ids, copy),
            )
            for place, prompt in enumerate(prompts)
            for copy in range(body.copies)
        ]
        return _Job(reply_id=reply_id, kind=kind, body=body, requests=requests, tools=tools)

    async def _answer(self, request: Request, job: _Job) -> Response:
        if job.body.stream:
            tokens: asyncio.Queue[_Token | None] = asyncio.Queue()
            done = self._scheduler.submit(job.requests, on_token=partial(_forward, _poster(tokens), _indices(job)))
            done.add_done_callback(partial(_end, _poster(tokens)))
            return StreamingResponse(self._stream(request, job, tokens, done), media_type="text/event-stream")
        done = self._scheduler.submit(job.requests)
        completions = await until_done(request, done, leave=lambda: self._scheduler.abort(job.names))
        return JSONResponse(
            {
                **self._head(job, job.kind),
                "choices": [self._choice(job, index, each) for index, each in enumerate(completions)],
                "usage": self._usage(job, completions),
            }
        )

    def _choice(self, job: _Job, index: int, completion: Completion) -> dict[str, Any]:
        ids, logprobs = completion.token_ids.tolist(), completion.logprobs.tolist()
        text = self._text(job, index, completion)
        choice: dict[str, Any] = {
            "index": index,
            "finish_reason": finish_word(completion.finish_reason),
            "logprobs": None,
            "prompt_token_ids": job.requests[index].prompt_ids.tolist(),
            **capture(ids, logprobs, completion.policy_version.tolist()),
        }
        if isinstance(job.body, CompletionBody):
            if job.body.wants_logprobs:
                choice["logprobs"] = completion_logprobs(self._model, ids, logprobs)
            return {**choice, "text": text}
        if job.body.logprobs:
            choice["logprobs"] = chat_logprobs(self._model, ids, logprobs)
        content, calls = split_tool_calls(text, f"{job.reply_id}_{index}") if job.tools else (text, [])
        choice["message"] = {"role": "assistant", "content": content, **({"tool_calls": calls} if calls else {})}
        if calls:
            choice["finish_reason"] = "tool_calls"
        return choice

    async def _stream(
        self, request: Request, job: _Job, tokens: asyncio.Queue[_Token | None], done: Future[list[Completion]]
    ) -> AsyncGenerator[str]:
        writers = [self._writer(job, index) for index in range(len(job.requests))]
        hung_up = asyncio.ensure_future(hang_up(request))
        hung_up.add_done_callback(lambda _: self._scheduler.abort(job.names))
        try:
            if job.kind == "chat.completion":
                for index in range(len(writers)):
                    yield self._event(job, index, {"role": "assistant", "content": ""})
            while (token := await tokens.get()) is not None:
                silent = token.token in job.requests[token.index].sampling.stop_token_ids
                text = "" if silent else writers[token.index].push(token.token)
                yield self._event(job, token.index, text, token=token)
            for index, completion in enumerate(done.result()):
                for event in self._last_events(job, index, completion, writers[index]):
                    yield event
            if job.body.stream_options is not None and job.body.stream_options.include_usage:
                head = self._head(job, "chat.completion.chunk" if job.kind == "chat.completion" else job.kind)
                yield _sse({**head, "choices": [], "usage": self._usage(job, done.result())})
            yield "data: [DONE]\n\n"
        finally:
            hung_up.cancel()  # its callback aborts what still runs; for ended requests that is no news

    def _last_events(self, job: _Job, index: int, completion: Completion, writer: TextWriter) -> list[str]:
        reason = finish_word(completion.finish_reason)
        rest = writer.finish()
        if not job.tools:
            return [self._event(job, index, rest, finish=reason)]
        text = before_stop(writer.text, job.requests[index].sampling.stop)
        content, calls = split_tool_calls(text, f"{job.reply_id}_{index}")
        if calls:
            deltas = [{**call, "index": place} for place, call in enumerate(calls)]
            return [
                self._event(job, index, rest),
                self._event(job, index, {"tool_calls": deltas}, finish="tool_calls"),
            ]
        return [self._event(job, index, content[writer.written - len(rest) :], finish=reason)]

    def _event(
        self,
        job: _Job,
        index: int,
        delta: str | dict[str, Any],
        *,
        token: _Token | None = None,
        finish: str | None = None,
    ) -> str:
        chat = job.kind == "chat.completion"
        choice: dict[str, Any] = {"index": index, "finish_reason": finish, "logprobs": None}
        if finish is not None:
            choice["prompt_token_ids"] = job.requests[index].prompt_ids.tolist()
        if token is not None:
            ids, logprobs = [token.token], [token.logprob]
            choice |= capture(ids, logprobs, [token.version])
            if isinstance(job.body, ChatBody) and job.body.logprobs:
                choice["logprobs"] = chat_logprobs(self._model, ids, logprobs)
            if isinstance(job.body, CompletionBody) and job.body.wants_logprobs:
                choice["logprobs"] = completion_logprobs(self._model, ids, logprobs)
        if chat:
            choice["delta"] = {"content": delta} if isinstance(delta, str) else delta
        else:
            choice["text"] = delta
        return _sse({**self._head(job, "chat.completion.chunk" if chat else job.kind), "choices": [choice]})

    def _head(self, job: _Job, kind: str) -> dict[str, Any]:
        return {"id": job.reply_id, "object": kind, "created": int(time.time()), "model": job.body.model}

    @staticmethod
    def _usage(job: _Job, completions: list[Completion]) -> dict[str, int]:
        return usage(job.prompt_tokens, sum(len(each.token_ids) for each in completions))

    def _text(self, job: _Job, index: int, completion: Completion) -> str:
        writer = self._writer(job, index)
        silent = job.requests[index].sampling.stop_token_ids
        pieces = [writer.push(token) for token in completion.token_ids.tolist() if token not in silent]
        visible = "".join(pieces) + writer.finish()
        return before_stop(writer.text, job.requests[index].sampling.stop) if job.tools else visible

    def _writer(self, job: _Job, index: int) -> TextWriter:
        stops = job.requests[index].sampling.stop
        return TextWriter(self._visible, (*stops, OPENING) if job.tools else stops)

    def _visible(self, ids: list[int]) -> str:
        return "" if self._model.tokenizer is None else self._model.tokenizer.decode(ids, skip_special_tokens=True)

    def _encode(self, text: str) -> list[int]:
        if self._model.tokenizer is None:
            raise EngineError(explain("this engine has no tokenizer", do="send the prompt as token ids"))
        return list(self._model.tokenizer.encode(text))

    def _render(self, body: ChatBody) -> list[int]:
        tokenizer = self._model.tokenizer
        if tokenizer is None or not tokenizer.chat_template:
            raise EngineError(explain("this model has no chat template", do="use /v1/completions"))
        try:
            text = tokenizer.apply_chat_template(
                body.template_messages(),
                tools=body.offered_tools,
                add_generation_prompt=True,
                tokenize=False,
                **(body.chat_template_kwargs or {}),
            )
        except (TemplateError, TypeError, KeyError, ValueError) as error:
            raise EngineError(explain("the chat template refuses these messages", got=str(error))) from error
        return list(tokenizer.encode(text, add_special_tokens=False))


def _indices(job: _Job) -> dict[str, int]:
    return {request.request_id: index for index, request in enumerate(job.requests)}


def _poster(tokens: asyncio.Queue[_Token | None]) -> Callable[[_Token | None], None]:
    """Put from another thread into a queue of this loop."""
    loop = asyncio.get_running_loop()

    def post(item: _Token | None) -> None:
        loop.call_soon_threadsafe(tokens.put_nowait, item)

    return post


def _forward(post: Callable[[_Token | None], None], indices: dict[str, int], generation: Generation) -> None:
    post(
        _Token(
            indices[generation.request.request_id],
            generation.ids[-1],
            generation.logprobs[-1],
            generation.versions[-1],
        )
    )


def _end(post: Callable[[_Token | None], None], done: Future[list[Completion]]) -> None:
    del done
    post(None)


def _sse(message: dict[str, Any]) -> str:
    return f"data: {json.dumps(message, separators=(',', ':'))}\n\n"
