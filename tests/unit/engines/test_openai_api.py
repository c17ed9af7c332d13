"""OpenAI-compatible routes, called through the application without a socket."""

from __future__ import annotations

import json

import httpx
import numpy as np
import pytest
from tests.unit.engines.harness import plain_logprobs

from windage.engines.config import EngineConfig
from windage.engines.embedded.model import ServedModel
from windage.engines.embedded.openai_api.bodies import ChatBody, CompletionBody, parse
from windage.engines.embedded.openai_api.tool_calls import split_tool_calls
from windage.engines.embedded.scheduler import Scheduler
from windage.engines.embedded.server import make_app
from windage.errors import EngineError

pytestmark = pytest.mark.anyio
ASK = {"model": "tiny", "max_tokens": 12, "seed": 3}
HELLO = [{"role": "user", "content": "hi"}]


@pytest.fixture
def app(qwen):
    model = ServedModel(EngineConfig(model=str(qwen), name="tiny", policy_version=4))
    scheduler = Scheduler(model)
    scheduler.start()
    yield make_app(model, scheduler)
    scheduler.stop()


@pytest.fixture
async def http(app):
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://engine") as client:
        yield client


async def post(http, route, **body):
    response = await http.post(f"/v1/{route}", json={**ASK, **body})
    assert response.status_code == 200, response.text
    return response.json()


async def stream(http, route, **body):
    response = await http.post(f"/v1/{route}", json={**ASK, **body, "stream": True})
    assert response.status_code == 200, response.text
    events = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert events[-1] == "[DONE]"
    return [json.loads(event) for event in events[:-1]]


async def test_models(http):
    (model,) = (await http.get("/v1/models")).json()["data"]
    assert (model["id"], model["policy_version"], model["max_model_len"]) == ("tiny", 4, 512)


async def test_capture_is_exact(http, qwen):
    reply = await post(http, "completions", prompt="12+3", temperature=0.8, logprobs=1)
    (choice,) = reply["choices"]
    whole = [*choice["prompt_token_ids"], *choice["token_ids"]]
    expected = plain_logprobs(qwen, whole, temperature=0.8)[3:]
    np.testing.assert_allclose(choice["token_logprobs"], expected, atol=1e-4)
    assert choice["policy_versions"] == [4] * len(choice["token_ids"])
    assert choice["logprobs"]["token_logprobs"] == choice["token_logprobs"]
    assert "".join(choice["logprobs"]["tokens"]).startswith(choice["text"])
    assert reply["usage"] == {
        "prompt_tokens": 4,
        "completion_tokens": len(choice["token_ids"]),
        "total_tokens": 4 + len(choice["token_ids"]),
    }


async def test_ids_in_are_taken_as_they_are(http):
    text = await post(http, "completions", prompt="12+3")
    ids = await post(http, "completions", prompt=text["choices"][0]["prompt_token_ids"])
    assert ids["choices"][0]["token_ids"] == text["choices"][0]["token_ids"]
    many = await post(http, "completions", prompt=[[5, 6], [7, 8, 9]])
    assert [choice["prompt_token_ids"] for choice in many["choices"]] == [[5, 6], [7, 8, 9]]


async def test_copies_differ_and_are_ordered(http):
    reply = await post(http, "completions", prompt=["ab", "cd"], n=3, temperature=2.0)
    assert [choice["index"] for choice in reply["choices"]] == list(range(6))
    assert len({tuple(choice["token_ids"]) for choice in reply["choices"]}) == 6
    again = await post(http, "completions", prompt=["ab", "cd"], n=3, temperature=2.0)
    assert [c["token_ids"] for c in again["choices"]] == [c["token_ids"] for c in reply["choices"]]
    assert reply["usage"]["prompt_tokens"] == 4


@pytest.mark.parametrize("route", ["completions", "chat/completions"])
async def test_streaming_says_the_same(http, route):
    body = {"prompt": "12+3"} if route == "completions" else {"messages": HELLO}
    body = {**body, "n": 2, "logprobs": 1 if route == "completions" else True, "max_tokens": 30, "temperature": 2.0}
    whole = await post(http, route, **body)
    events = await stream(http, route, **body, stream_options={"include_usage": True})
    assert events[-1]["choices"] == []
    assert events[-1]["usage"] == whole["usage"]
    for index, choice in enumerate(whole["choices"]):
        parts = [c for event in events for c in event["choices"] if c["index"] == index]
        tokens = [token for part in parts for token in part.get("token_ids", [])]
        assert tokens == choice["token_ids"]
        assert [v for part in parts for v in part.get("policy_versions", [])] == choice["policy_versions"]
        assert [lp for part in parts for lp in part.get("token_logprobs", [])] == pytest.approx(
            choice["token_logprobs"], abs=1e-4
        )
        if route == "completions":
            assert "".join(part["text"] for part in parts) == choice["text"]
        else:
            assert parts[0]["delta"]["role"] == "assistant"
            assert "".join(part["delta"].get("content", "") for part in parts) == choice["message"]["content"]
        assert parts[-1]["finish_reason"] == choice["finish_reason"]
        assert parts[-1]["prompt_token_ids"] == choice["prompt_token_ids"]


async def test_stop_string_is_sampled_but_not_shown(http):
    free = (await post(http, "completions", prompt="12+3", max_tokens=40, ignore_eos=True))["choices"][0]
    stop = free["text"][6:8]
    cut = free["text"].index(stop)
    done = (await post(http, "completions", prompt="12+3", max_tokens=40, ignore_eos=True, stop=stop))["choices"][0]
    assert (done["text"], done["finish_reason"]) == (free["text"][:cut], "stop")
    assert done["token_ids"] == free["token_ids"][: len(done["token_ids"])]
    assert len(done["token_ids"]) > len(done["text"])
    events = await stream(http, "completions", prompt="12+3", max_tokens=40, ignore_eos=True, stop=stop)
    assert "".join(choice["text"] for event in events for choice in event["choices"]) == done["text"]


async def test_stop_id_is_sampled_but_not_shown(http):
    free = (await post(http, "completions", prompt="12+3", max_tokens=40, ignore_eos=True))["choices"][0]
    stop = free["token_ids"][6]
    place = free["token_ids"].index(stop)
    done = (await post(http, "completions", prompt="12+3", max_tokens=40, ignore_eos=True, stop_token_ids=[stop]))[
        "choices"
    ][0]
    assert done["token_ids"] == free["token_ids"][: place + 1]
    assert free["text"].startswith(done["text"])
    assert len(done["text"]) <= place


async def test_chat_renders_the_template(http, app):
    reply = await post(
        http,
        "chat/completions",
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "c"},
            {"role": "tool", "content": "d"},
        ],
    )
    # <user> ab <eos> <assistant> c <eos> <tool> d <eos> <assistant>
    ids = reply["choices"][0]["prompt_token_ids"]
    assert [ids[0], ids[3], ids[4], ids[6], ids[7], ids[9], ids[10]] == [2, 1, 3, 1, 4, 1, 3]
    assert len(ids) == 11


async def test_chat_default_limit_is_the_context(http):
    reply = await post(http, "chat/completions", messages=HELLO, max_tokens=None, ignore_eos=True)
    assert reply["usage"]["total_tokens"] == 512


REFUSED = {
    "unknown field": ({"prompt": "a", "min_p": 0.1}, "min_p"),
    "unserved value": ({"prompt": "a", "presence_penalty": 0.5}, "presence_penalty"),
    "echo": ({"prompt": "a", "echo": True}, "echo"),
    "other model": ({"prompt": "a", "model": "gpt-9"}, "no such model"),
    "empty": ({"prompt": ""}, "empty"),
    "id beyond the vocabulary": ({"prompt": [2**40]}, "vocabulary"),
    "too long": ({"prompt": "a", "max_tokens": 512}, "does not fit"),
    "no tokens": ({"prompt": "a", "max_tokens": 0}, "max_tokens"),
    "temperature": ({"prompt": "a", "temperature": -1}, "temperature"),
    "no prompt": ({}, "prompt"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("streaming", [False, True])
async def test_refusals(http, case, streaming):
    body, words = REFUSED[case]
    response = await http.post("/v1/completions", json={**ASK, "stream": streaming, **body})
    assert response.status_code == 400
    assert words in response.json()["error"]["message"]


async def test_broken_json_and_broken_msgpack(http):
    for route in ("/v1/completions", "/v1/chat/completions", "/generate", "/score", "/commit_update"):
        response = await http.post(route, content=b"{oops")
        assert response.status_code == 400
        assert response.json()["error"]["message"]


async def test_images_and_broken_tool_arguments_are_refused(http):
    for message in (
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
        {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{oops"}}]},
    ):
        response = await http.post("/v1/chat/completions", json={**ASK, "messages": [message]})
        assert response.status_code == 400


def test_tool_arguments_become_objects():
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    body = parse(
        ChatBody, json.dumps({"model": "m", "messages": [{"role": "assistant", "tool_calls": [call]}]}).encode()
    )
    assert body.template_messages()[0]["tool_calls"][0]["function"]["arguments"] == {"a": 1}


def test_two_limits_are_refused():
    with pytest.raises(EngineError, match="max_completion_tokens"):
        parse(
            ChatBody,
            json.dumps({"model": "m", "messages": HELLO, "max_tokens": 1, "max_completion_tokens": 2}).encode(),
        )
    assert parse(CompletionBody, b'{"model": "m", "prompt": "a", "presence_penalty": 0.0}').presence_penalty == 0


def test_several_tool_calls():
    text = 'so<tool_call>{"name": "f"}</tool_call>\n<tool_call>\n{"name": "g", "arguments": {"x": [1]}}\n</tool_call>'
    content, calls = split_tool_calls(text, "r")
    assert content == "so"
    assert [call["function"] for call in calls] == [
        {"name": "f", "arguments": "{}"},
        {"name": "g", "arguments": '{"x": [1]}'},
    ]
    assert len({call["id"] for call in calls}) == 2
    assert split_tool_calls("none", "r") == ("none", [])


TOOLS = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("says", "content", "calls"),
    [
        ('let me<tool_call>{"name":"add","arguments":{"a":1}}</tool_call>', "let me", [("add", '{"a": 1}')]),
        ("just <tool words", "just <tool words", []),
        ("bad <tool_call>{no", "bad <tool_call>{no", []),
    ],
)
async def test_tool_calls_in_a_reply(http, app, monkeypatch, streaming, says, content, calls):
    """The model is random, so its tokens are replaced as they are sampled."""
    from windage.engines.embedded.generation import Generation

    tokenizer = next(r for r in app.routes if r.path == "/generate").endpoint.__self__._model.tokenizer
    script = [*tokenizer.encode(says), tokenizer.eos_token_id]
    append = Generation.append
    monkeypatch.setattr(Generation, "append", lambda self, token, *rest: append(self, script[self.sampled], *rest))
    body = {"messages": HELLO, "tools": TOOLS, "max_tokens": 200}
    if streaming:
        events = [c for event in await stream(http, "chat/completions", **body) for c in event["choices"]]
        text = "".join(event["delta"].get("content", "") for event in events)
        got = [call for event in events for call in event["delta"].get("tool_calls", [])]
        finish = events[-1]["finish_reason"]
    else:
        (choice,) = (await post(http, "chat/completions", **body))["choices"]
        text, finish = choice["message"]["content"], choice["finish_reason"]
        got = choice["message"].get("tool_calls", [])
    assert text == content
    assert [(call["function"]["name"], call["function"]["arguments"]) for call in got] == calls
    assert finish == ("tool_calls" if calls else "stop")
