"""FencedFormat: a fenced python block is the tool call, for instruction-tuned models without a tool format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from windage.environments.protocol import Message
from windage.environments.tool_math.final_answer import final_answer
from windage.environments.tool_math.format import Answer, Call

__all__ = ["FencedFormat"]

_CALL = re.compile(r"```(?:python|py)[ \t]*\n(.*?)```", re.DOTALL)
_INSTRUCTIONS = (
    "Solve the problem. To calculate, write a python block and stop; you will be shown its output:\n"
    "```python\nprint(2 + 3)\n```\n"
    "Then give the final answer as \\boxed{answer}."
)


class FencedFormat:
    """The output comes back in a message of role ``user``, which every template knows.

    ``system_prompt``: None for this format's own instructions, empty for none.
    """

    stop: tuple[str, ...] = ("\n```\n",)
    tools: Sequence[Mapping[str, Any]] = ()

    def __init__(self, system_prompt: str | None = None) -> None:
        self._system = _INSTRUCTIONS if system_prompt is None else system_prompt

    def opening(self, question: str, program: str) -> tuple[Message, ...]:
        """Instructions and question."""
        user = Message(role="user", content=question)
        return (Message(role="system", content=self._system), user) if self._system else (user,)

    def read(self, text: str) -> Call | Answer | None:
        """The first complete block, else the final answer."""
        if call := _CALL.search(text):
            return Call(code=call[1])
        answer = final_answer(text)
        return None if answer is None else Answer(text=answer)

    def observation(self, output: str, *, failed: bool) -> Message:
        """The output under a heading."""
        return Message(role="user", content=f"Output:\n{output}")

    def call(self, program: str) -> str:
        """A block that prints the value of ``program``."""
        return f"```python\nprint({program})\n```"

    def answer(self, text: str) -> str:
        """A boxed answer."""
        return f"The answer is \\boxed{{{text}}}."
