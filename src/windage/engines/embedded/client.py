"""EngineClient: the controller's side of an embedded engine, over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import Any, Self, TypeVar

import anyio
import httpx
import numpy as np
from numpy.typing import NDArray

from windage.engines.embedded.wire import BeginUpdate, CommitUpdate, ScoreRequest
from windage.engines.protocol import Completion, EngineStatus, GenerateRequest, RunningPolicy
from windage.errors import DeadlineExceeded, EngineError, EngineUnavailable, explain
from windage.records.codec import decode, encode

__all__ = ["EngineClient"]

T = TypeVar("T")


class EngineClient:
    """An :class:`~windage.engines.protocol.Engine` behind a URL. Close with :meth:`aclose` or ``async with``.

    Every call in progress has a line of its own: an HTTP client with one connection. A shared pool looks at all of its
    connections for each request, which at hundreds of requests in flight costs more than the requests themselves.

    Arguments:
        url: address from the engine's ready message
        deadline: seconds any call may take; None = as long as the caller's own cancel scope allows
    """

    def __init__(self, url: str, *, deadline: float | None = None) -> None:
        self.url = url
        self._deadline = deadline
        self._free: list[httpx.AsyncClient] = []
        self._all: list[httpx.AsyncClient] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections; the engine aborts what it was doing for them."""
        for line in self._all:
            await line.aclose()

    async def generate(self, requests: Sequence[GenerateRequest]) -> list[Completion]:
        """See :class:`~windage.engines.protocol.Engine`."""
        return await self._call("POST", "/generate", list(requests), list[Completion])

    async def score(
        self, token_ids: Sequence[NDArray[np.int32]], *, temperature: float = 1.0
    ) -> list[NDArray[np.float32]]:
        """See :class:`~windage.engines.protocol.Engine`."""
        body = ScoreRequest(token_ids=list(token_ids), temperature=temperature)
        return await self._call("POST", "/score", body, list[NDArray[np.float32]])

    async def abort(self, request_ids: Sequence[str]) -> None:
        """See :class:`~windage.engines.protocol.Engine`."""
        await self._call("POST", "/abort", list(request_ids), NoneType)

    async def begin_update(self, version: int, path: str) -> None:
        """See :class:`~windage.engines.protocol.Engine`."""
        await self._call("POST", "/begin_update", BeginUpdate(version=version, path=path), NoneType)

    async def commit_update(self, version: int, *, running: RunningPolicy = "drain") -> EngineStatus:
        """See :class:`~windage.engines.protocol.Engine`."""
        return await self._call("POST", "/commit_update", CommitUpdate(version=version, running=running), EngineStatus)

    async def status(self) -> EngineStatus:
        """See :class:`~windage.engines.protocol.Engine`."""
        return await self._call("GET", "/status", None, EngineStatus)

    async def _call(self, method: str, route: str, body: Any, kind: type[T]) -> T:
        line = self._free.pop() if self._free else self._open_line()
        try:
            with anyio.fail_after(self._deadline):
                response = await line.request(method, route, content=None if body is None else encode(body))
        except TimeoutError as error:
            raise DeadlineExceeded(
                explain(f"engine {self.url}{route} has not answered", expected=f"within {self._deadline} s")
            ) from error
        except httpx.TransportError as error:
            raise EngineUnavailable(
                explain(f"engine {self.url} is gone", got=repr(error), do="retry when it is back in rotation")
            ) from error
        finally:
            self._free.append(line)
        if response.status_code != 200:
            raise EngineError(_message(response))
        return decode(response.content, kind)

    def _open_line(self) -> httpx.AsyncClient:
        line = httpx.AsyncClient(
            base_url=self.url,
            timeout=httpx.Timeout(None, connect=10.0),
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=1, keepalive_expiry=60.0),
            trust_env=False,
            verify=False,  # noqa: S501 - plain HTTP to our own child
        )
        self._all.append(line)
        return line


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return explain(f"engine answered {response.status_code}", got=response.text[:500])
