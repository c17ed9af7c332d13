"""The engine's HTTP application: native msgpack routes for Windage, OpenAI-compatible ones for everyone else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from windage.engines.embedded.hang_up import until_done
from windage.engines.embedded.model import ServedModel
from windage.engines.embedded.openai_api.routes import OpenAIRoutes
from windage.engines.embedded.scheduler import EngineBusy, Scheduler
from windage.engines.embedded.wire import BeginUpdate, CommitUpdate, ScoreRequest
from windage.engines.protocol import GenerateRequest
from windage.errors import WindageError
from windage.records.codec import decode, encode

__all__ = ["make_app"]

MSGPACK = "application/msgpack"


def make_app(
    model: ServedModel,
    scheduler: Scheduler,
    *,
    lifespan: Callable[[Starlette], AbstractAsyncContextManager[None]] | None = None,
) -> Starlette:
    """The routes of one engine. A refused request is a 400 with ``{"error": {"message", "type"}}``, too many a 429."""
    routes = _Native(model, scheduler)
    return Starlette(
        routes=[
            Route("/generate", routes.generate, methods=["POST"]),
            Route("/score", routes.score, methods=["POST"]),
            Route("/abort", routes.abort, methods=["POST"]),
            Route("/begin_update", routes.begin_update, methods=["POST"]),
            Route("/commit_update", routes.commit_update, methods=["POST"]),
            Route("/status", routes.status, methods=["GET"]),
            *OpenAIRoutes(model, scheduler).routes(),
        ],
        exception_handlers={WindageError: _refuse},
        lifespan=lifespan,
    )


class _Native:
    def __init__(self, model: ServedModel, scheduler: Scheduler) -> None:
        self._model = model
        self._scheduler = scheduler

    async def generate(self, request: Request) -> Response:
        requests = decode(await request.body(), list[GenerateRequest])
        names = [each.request_id for each in requests]
        completions = await until_done(
            request, self._scheduler.submit(requests), leave=lambda: self._scheduler.abort(names)
        )
        return _msgpack([replace(each, text=self._model.decode(each.token_ids.tolist())) for each in completions])

    async def score(self, request: Request) -> Response:
        body = decode(await request.body(), ScoreRequest)
        job = self._scheduler.score(body.token_ids, temperature=body.temperature)
        return _msgpack(await until_done(request, job, leave=job.cancel))

    async def abort(self, request: Request) -> Response:
        self._scheduler.abort(decode(await request.body(), list[str]))
        return _msgpack(None)

    async def begin_update(self, request: Request) -> Response:
        body = decode(await request.body(), BeginUpdate)
        await asyncio.to_thread(self._scheduler.begin_update, body.version, body.path)
        return _msgpack(None)

    async def commit_update(self, request: Request) -> Response:
        body = decode(await request.body(), CommitUpdate)
        await asyncio.wrap_future(self._scheduler.commit_update(body.version, running=body.running))
        return _msgpack(self._scheduler.status())

    async def status(self, request: Request) -> Response:
        del request
        return _msgpack(self._scheduler.status())


async def _refuse(request: Request, error: Exception) -> Response:
    del request
    status = 429 if isinstance(error, EngineBusy) else 400
    return JSONResponse({"error": {"message": str(error), "type": type(error).__name__}}, status_code=status)


def _msgpack(record: Any) -> Response:
    return Response(encode(record), media_type=MSGPACK)
