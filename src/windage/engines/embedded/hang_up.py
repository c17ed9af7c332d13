"""Callers that hang up: their work ends, instead of going on for nobody."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from starlette.requests import Request

from windage.errors import EngineError

__all__ = ["CallerGone", "hang_up", "until_done"]

T = TypeVar("T")


class CallerGone(EngineError):
    """The connection of a request closed before its answer."""


async def until_done(request: Request, job: Future[T], *, leave: Callable[[], Any]) -> T:
    """The job's result; when the caller hangs up first, ``leave()`` ends the job.

    Raises:
        CallerGone: nobody reads the answer any more.
    """
    result = asyncio.wrap_future(job)
    hung_up = asyncio.ensure_future(hang_up(request))
    try:
        await asyncio.wait({result, hung_up}, return_when=asyncio.FIRST_COMPLETED)
        if not result.done():
            leave()
            raise CallerGone("the caller hung up")
        return result.result()
    finally:
        hung_up.cancel()


async def hang_up(request: Request) -> None:
    """Wait until the caller is gone; the body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
