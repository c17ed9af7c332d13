"""Formats: what a model writes is read as meant, and demonstrations are read back as themselves."""

from __future__ import annotations

import json

import pytest

from windage.environments.tool_math.config import ToolMathConfig
from windage.environments.tool_math.fenced_format import FencedFormat
from windage.environments.tool_math.final_answer import final_answer
from windage.environments.tool_math.format import Answer, Call
from windage.environments.tool_math.formats import format_of
from windage.environments.tool_math.plain_format import PlainFormat
from windage.environments.tool_math.tool_call_format import ToolCallFormat
from windage.rollout.character_tokenizer import CHARACTERS

STYLES = [PlainFormat(), ToolCallFormat(), FencedFormat()]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("answer", ["357", "-12"])
def test_what_a_demonstration_writes_is_read_back(style, answer):
    call, said = style.call("12+345"), style.answer(answer)
    read = style.read(call)
    assert isinstance(read, Call)
    assert "12+345" in read.code
    assert not read.problem
    assert style.read(said) == Answer(text=answer)
    assert style.stop


@pytest.mark.parametrize("style", STYLES[1:])
def test_a_stop_mark_ends_the_call_and_nothing_before_it(style):
    call = style.call("1+1") + "\n"
    (stop,) = style.stop
    assert call.index(stop) + len(stop) in (len(call) - 1, len(call))


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("<1+2>", Call(code="1+2")),
        ("#3", Answer(text="3")),
        ("#-3", Answer(text="-3")),
        ("<>", Call(code="")),
        ("<1<2+3>", Call(code="2+3")),
        ("12", None),
        ("#", None),
        ("#3#", None),
        ("#1+2", None),
        ("", None),
    ],
)
def test_plain(text, meaning):
    assert PlainFormat().read(text) == meaning


@pytest.mark.parametrize(
    ("output", "failed", "shown"),
    [
        ("46", False, "=46|"),
        ("-4", False, "=-4|"),
        ("4.5", False, "=?|"),
        ("9" * 21, False, "=?|"),
        ("46", True, "=?|"),
    ],
)
def test_plain_observations_stay_in_the_alphabet(output, failed, shown):
    assert PlainFormat().observation(output, failed=failed).content == shown
    assert set(shown) <= set(CHARACTERS)


def tool_call(body):
    return f"<think>use the tool, not \\boxed{{1}}</think>\n<tool_call>\n{body}\n</tool_call>"


def test_tool_calls_as_objects_and_as_encoded_arguments():
    style = ToolCallFormat()
    for arguments in ({"code": "1+1"}, json.dumps({"code": "1+1"})):
        body = json.dumps({"name": "python", "arguments": arguments})
        assert style.read(tool_call(body)) == Call(code="1+1")
    (schema,) = style.tools
    assert schema["function"]["name"] == "python"


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "[]",
        "1",
        '{"name": "python"}',
        '{"name": "python", "arguments": {"code": 3}}',
        '{"name": "bash", "arguments": {"code": "ls"}}',
        '{"name": "python", "arguments": "x"}',
        "[" * 50_000,
    ],
)
def test_a_malformed_tool_call_is_told_to_the_model(body):
    read = ToolCallFormat().read(tool_call(body))
    assert isinstance(read, Call)
    assert read.problem.startswith("Error: ")
    assert len(read.problem) <= 300


def test_thoughts_and_unfinished_calls_are_not_acted_on():
    assert ToolCallFormat().read("<think>\\boxed{4}</think>I give up") is None
    assert ToolCallFormat().read('<tool_call>{"name"') is None
    assert FencedFormat().read("```python\nprint(x") is None
    assert FencedFormat().read("```\nno code\n``` so: answer: 4") == Answer(text="4")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (r"\boxed{1} or rather \boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{7} and \boxed{8", "7"),
        ("thus\n#### 12", "12"),
        ("<answer> a, b </answer>", "a, b"),
        ("The answer is 42.", "42"),
        ("Answer: **x + 1**", "x + 1"),
        ("The final answer:\n7", "7"),
        ("So 3 and then -1,234.5 remain", "-1,234.5"),
        ("nothing", None),
        ("", None),
    ],
)
def test_final_answers(text, answer):
    assert final_answer(text) == answer


def test_settings_choose_the_format_and_its_instructions():
    assert isinstance(format_of(ToolMathConfig()), PlainFormat)
    own = format_of(ToolMathConfig(format="fenced", system_prompt="Be brief."))
    assert [m.content for m in own.opening("1+1?", "1+1")] == ["Be brief.", "1+1?"]
    bare = format_of(ToolMathConfig(format="tool_call", system_prompt=""))
    assert [m.role for m in bare.opening("1+1?", "1+1")] == ["user"]
