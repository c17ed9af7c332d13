"""EngineClient: which failure becomes which error. The server here is a function."""

from __future__ import annotations

import anyio
import httpx
import numpy as np
import pytest
import trio.testing
from tests.unit.engines.harness import ask

from windage.engines.embedded.client import EngineClient
from windage.engines.protocol import Completion, EngineStatus
from windage.errors import DeadlineExceeded, EngineError, EngineUnavailable, RecordError
from windage.records.codec import encode

pytestmark = pytest.mark.anyio


def client(answer, **settings):
    made = EngineClient("http://engine", **settings)
    made._open_line = lambda: httpx.AsyncClient(base_url="http://engine", transport=httpx.MockTransport(answer))
    return made


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("refused"),
        httpx.ReadError("reset"),
        httpx.WriteError("broken pipe"),
        httpx.RemoteProtocolError("closed without an answer"),
        httpx.ConnectTimeout("silence"),
    ],
)
async def test_a_gone_process_is_unavailable(error):
    def answer(request):
        raise error

    async with client(answer) as engine:
        with pytest.raises(EngineUnavailable, match="http://engine is gone"):
            await engine.generate([ask([5])])


@pytest.mark.parametrize("status", [400, 429, 500])
async def test_a_refusal_is_an_error_with_the_engine_s_words(status):
    def answer(request):
        return httpx.Response(status, json={"error": {"message": "too hot", "type": "EngineError"}})

    async with client(answer) as engine:
        with pytest.raises(EngineError, match="too hot") as caught:
            await engine.status()
        assert not isinstance(caught.value, EngineUnavailable)


async def test_an_answer_that_is_no_record():
    async with client(lambda request: httpx.Response(200, content=b"\xc1")) as engine:
        with pytest.raises(RecordError):
            await engine.status()


async def test_an_error_page_of_something_else():
    async with client(lambda request: httpx.Response(502, text="<html>proxy</html>")) as engine:
        with pytest.raises(EngineError, match=r"502.*proxy"):
            await engine.status()


async def test_records_survive_the_way():
    done = Completion(
        request_id="a",
        token_ids=np.array([1, 2], dtype=np.int32),
        logprobs=np.array([-0.5, np.nan], dtype=np.float32),
        policy_version=np.array([3, 4], dtype=np.int32),
        finish_reason="stop",
        text="é",
        entropy=None,
        routes=np.arange(8, dtype=np.uint8).reshape(2, 2, 2),
    )
    async with client(lambda request: httpx.Response(200, content=encode([done]))) as engine:
        (got,) = await engine.generate([ask([5])])
    assert got.token_ids.tolist() == [1, 2]
    assert got.logprobs.tobytes() == done.logprobs.tobytes()
    assert (got.policy_version.tolist(), got.finish_reason, got.text) == ([3, 4], "stop", "é")
    assert got.entropy is None
    assert got.routes.dtype == np.uint8
    assert got.routes.tolist() == done.routes.tolist()


async def test_status_travels():
    status = EngineStatus(
        policy_version=3, fingerprint="f", running=1, waiting=2, tokens_generated=3, vocab_size=4, device="cpu"
    )
    async with client(lambda request: httpx.Response(200, content=encode(status))) as engine:
        assert await engine.status() == status


def test_deadline_under_a_virtual_clock():
    """A silent engine is given up after the deadline, with words; without one the call waits for the caller's scope."""

    async def silence(request):
        await anyio.sleep_forever()

    async def main():
        async with client(silence, deadline=900.0) as engine:
            began = trio.current_time()
            with pytest.raises(DeadlineExceeded, match=r"/status has not answered.*900"):
                await engine.status()
            assert trio.current_time() - began == pytest.approx(900)
        async with client(silence) as engine:
            with anyio.move_on_after(5000) as scope:
                await engine.status()
            assert scope.cancelled_caught

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
