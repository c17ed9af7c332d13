"""ToolCallFormat: JSON in ``<tool_call>`` tags, as the chat templates of tool-trained models spell it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from windage.environments.protocol import Message
from windage.environments.tool_math.final_answer import final_answer
from windage.environments.tool_math.format import Answer, Call

__all__ = ["ToolCallFormat"]

_CALL = re.compile(r"<tool_call>(.*?)</tool_call>", re.DOTALL)
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
_INSTRUCTIONS = (
    "Solve the problem. Use the python tool for every calculation; it shows what the code prints, and the value of "
    "its last expression. Then give the final answer as \\boxed{answer}."
)
_SCHEMA: Mapping[str, Any] = {
    "type": "function",
    "function": {
        "name": "python",
        "description": "Run Python code and read what it prints and the value of its last expression.",
        "parameters": {
            "type": "object",
            "properties": {"code": {"type": "string", "description": "Python source code"}},
            "required": ["code"],
        },
    },
}


class ToolCallFormat:
    """``system_prompt``: None for this format's own instructions, empty for none."""

    stop: tuple[str, ...] = ("</tool_call>",)
    tools: Sequence[Mapping[str, Any]] = (_SCHEMA,)

    def __init__(self, system_prompt: str | None = None) -> None:
        self._system = _INSTRUCTIONS if system_prompt is None else system_prompt

    def opening(self, question: str, program: str) -> tuple[Message, ...]:
        """Instructions and question."""
        user = Message(role="user", content=question)
        return (Message(role="system", content=self._system), user) if self._system else (user,)

    def read(self, text: str) -> Call | Answer | None:
        """The first complete call, else the final answer. Thoughts count as neither."""
        said = _THOUGHT.sub("", text)
        if call := _CALL.search(said):
            return _parse(call[1])
        answer = final_answer(said)
        return None if answer is None else Answer(text=answer)

    def observation(self, output: str, *, failed: bool) -> Message:
        """The output as it is."""
        return Message(role="tool", content=output)

    def call(self, program: str) -> str:
        """A call that evaluates ``program``."""
        body = json.dumps({"name": "python", "arguments": {"code": program}})
        return f"<tool_call>\n{body}\n</tool_call>"

    def answer(self, text: str) -> str:
        """A boxed answer."""
        return f"The answer is \\boxed{{{text}}}."


def _parse(body: str) -> Call:
    try:
        call = json.loads(body)
        arguments = call["arguments"]
        code = (json.loads(arguments) if isinstance(arguments, str) else arguments)["code"]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return Call(code="", problem=f"Error: the tool call is malformed ({type(error).__name__}: {error})"[:300])
    if call.get("name") != "python" or not isinstance(code, str):
        return Call(code="", problem='Error: call the tool "python" with the string argument "code"')
    return Call(code=code)
