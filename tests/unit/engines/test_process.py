"""Real engine processes: launch, generate, score, update, death of either side, and the openai client."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import anyio
import numpy as np
import openai
import psutil
import pytest
from tests.unit.engines.harness import ask, plain_logprobs, prompts, published, same

from windage.engines.config import EngineConfig
from windage.engines.embedded.launch import launch
from windage.errors import EngineError, EngineUnavailable
from windage.processes import ChildDied

pytestmark = [pytest.mark.process, pytest.mark.anyio]


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
async def engine(model_folder, tmp_path_factory):
    """One process for the tests that leave it as they found it (version 0)."""
    config = EngineConfig(model=str(model_folder("qwen3")), name="tiny", policy_version=0, threads=1)
    child, client = await launch(config, log=tmp_path_factory.mktemp("log") / "engine.log")
    yield client
    await client.aclose()
    await child.stop()


def wave():
    return [ask(row, f"w/{i}", seed=i, max_tokens=10 + i) for i, row in enumerate(prompts(6))]


async def idle(engine):
    """Wait until nothing runs: each status call is a round trip, no sleep."""
    with anyio.fail_after(30):
        while (status := await engine.status()).running or status.waiting:
            pass
    return status


async def test_generate_score_and_status(engine, qwen):
    before = (await engine.status()).tokens_generated
    done = await engine.generate(wave())
    assert [each.request_id for each in done] == [f"w/{i}" for i in range(6)]
    assert all(each.text for each in done)
    scores = await engine.score(
        [np.concatenate((r.prompt_ids, d.token_ids)) for r, d in zip(wave(), done, strict=True)]
    )
    for request, each, score in zip(wave(), done, scores, strict=True):
        np.testing.assert_allclose(score[len(request.prompt_ids) :], each.logprobs, atol=1e-4)
    status = await engine.status()
    assert status.tokens_generated - before == sum(range(10, 16))
    assert status.busy_seconds > 0
    whole = np.concatenate((wave()[0].prompt_ids, done[0].token_ids))
    np.testing.assert_allclose(scores[0][1:], plain_logprobs(qwen, whole), atol=1e-4)


async def test_refusals_reach_the_caller_in_words(engine):
    with pytest.raises(EngineError, match="prompt is empty"):
        await engine.generate([ask([])])
    with pytest.raises(EngineError, match="nothing staged"):
        await engine.commit_update(3)
    with pytest.raises(EngineError, match="not committed"):
        await engine.begin_update(3, "/nowhere")
    assert (await engine.status()).policy_version == 0


async def test_abort_from_another_call(engine):
    done = []

    async def generate():
        done.extend(await engine.generate([ask([5, 6], "long", max_tokens=500), ask([7], "short", max_tokens=3)]))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(generate)
            while not (await engine.status()).running:
                pass
            await engine.abort(["long"])
    assert [each.finish_reason for each in done] == ["aborted", "length"]


@pytest.mark.parametrize("how", ["generate", "score", "stream"])
async def test_hanging_up_ends_the_work(engine, how):
    long = [ask([5, 6], f"gone/{i}", max_tokens=500) for i in range(40)]
    if how == "stream":
        async with openai.AsyncOpenAI(base_url=f"{engine.url}/v1", api_key="-", max_retries=0) as client:
            reply = await client.completions.create(
                model="tiny", prompt="a", max_tokens=500, n=40, stream=True, extra_body={"ignore_eos": True}
            )
            async for _ in reply:
                break
            await reply.close()
        assert (await idle(engine)).tokens_generated
        return
    began = (await engine.status()).tokens_generated
    async with anyio.create_task_group() as group:
        if how == "generate":
            group.start_soon(engine.generate, long)
            while not (await engine.status()).running:
                pass
        else:
            group.start_soon(engine.score, [np.full(500, 5)] * 200)
            await engine.status()
        group.cancel_scope.cancel()
    status = await idle(engine)
    assert status.tokens_generated - began < 40 * 500
    assert len(await engine.generate(wave())) == 6


async def test_openai_client(engine, qwen):
    async with openai.AsyncOpenAI(base_url=f"{engine.url}/v1", api_key="-", max_retries=0) as client:
        assert [model.id async for model in client.models.list()] == ["tiny"]
        chat = {"model": "tiny", "messages": [{"role": "user", "content": "2+2"}], "max_tokens": 20, "seed": 5}
        reply = await client.chat.completions.create(**chat, logprobs=True)
        choice = reply.choices[0]
        expected = plain_logprobs(qwen, [*choice.prompt_token_ids, *choice.token_ids])[
            len(choice.prompt_token_ids) - 1 :
        ]
        np.testing.assert_allclose(choice.token_logprobs, expected, atol=1e-4)
        assert [entry.logprob for entry in choice.logprobs.content] == choice.token_logprobs
        text, tokens = "", []
        async for chunk in await client.chat.completions.create(**chat, stream=True):
            text += chunk.choices[0].delta.content or ""
            tokens += getattr(chunk.choices[0], "token_ids", [])
        assert (text, tokens) == (choice.message.content, choice.token_ids)
        with pytest.raises(openai.BadRequestError, match="frequency_penalty"):
            await client.chat.completions.create(**chat, frequency_penalty=1.0)


async def test_update_restart_at_the_version_and_bit_identity(qwen, tmp_path):
    """An engine that was updated and one started from the published folder give the same bits."""
    folder = published(qwen, tmp_path / "version-3", 3)
    config = EngineConfig(model=str(qwen), policy_version=0, threads=1)
    child, engine = await launch(config, log=tmp_path / "one.log")
    try:
        old = await engine.generate(wave())
        first = await engine.status()
        await engine.begin_update(3, str(folder))
        assert (await engine.status()).fingerprint == first.fingerprint
        status = await engine.commit_update(3)
        assert status.policy_version == 3
        assert status.fingerprint != first.fingerprint
        new = await engine.generate(wave())
        assert not same(old[5], new[5])
    finally:
        await engine.aclose()
        await child.stop()
    child, engine = await launch(config, log=tmp_path / "two.log", policy_folder=str(folder))
    try:
        assert await engine.status() == status.__class__(
            **{name: getattr(status, name) for name in status.__slots__}
            | {"tokens_generated": 0, "busy_seconds": (await engine.status()).busy_seconds}
        )
        assert all(same(a, b) for a, b in zip(new, await engine.generate(wave()), strict=True))
        os.kill(child.pid, signal.SIGKILL)
        with pytest.raises(EngineUnavailable):
            await engine.generate(wave())
        with pytest.raises(EngineUnavailable):
            await engine.status()
        assert await child.wait() == -signal.SIGKILL
    finally:
        await engine.aclose()
        await child.stop()


async def test_death_in_mid_generation_reaches_the_caller(qwen, tmp_path):
    child, engine = await launch(EngineConfig(model=str(qwen), policy_version=0), log=tmp_path / "engine.log")
    async with engine:
        with anyio.fail_after(60):
            async with anyio.create_task_group() as group:

                async def doomed():
                    with pytest.raises(EngineUnavailable):
                        await engine.generate([ask([5], max_tokens=500) for _ in range(60)])

                group.start_soon(doomed)
                while not (await engine.status()).running:
                    pass
                child.kill()
    await child.stop()


async def test_a_model_that_cannot_be_served_is_said_at_launch(tmp_path):
    with pytest.raises(ChildDied, match="no model"):
        await launch(EngineConfig(model=str(tmp_path)), log=tmp_path / "engine.log")


def test_the_engine_dies_with_its_controller(qwen, tmp_path):
    """The controller is killed with SIGKILL: nothing runs on."""
    program = textwrap.dedent(
        f"""
        import anyio, pathlib
        from windage.engines.config import EngineConfig
        from windage.engines.embedded.launch import launch

        async def main():
            child, engine = await launch(EngineConfig(model={str(qwen)!r}), log=pathlib.Path({str(tmp_path)!r}) / "log")
            print(child.pid, flush=True)
            await anyio.sleep_forever()

        anyio.run(main)
        """
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as controller:
        orphan = psutil.Process(int(controller.stdout.readline()))
        controller.kill()
    orphan.wait(timeout=30)
    assert not orphan.is_running()


def test_client_and_launch_do_not_import_torch():
    program = (
        "import sys, windage.engines.embedded.launch; print('torch' in sys.modules, 'transformers' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
