"""Tool calls in a reply's text: ``<tool_call>{"name": …, "arguments": {…}}</tool_call>``, as Hermes and Qwen write."""

from __future__ import annotations

import json
import re
from typing import Any

__all__ = ["OPENING", "split_tool_calls"]

OPENING = "<tool_call>"
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|$)", re.DOTALL)


def split_tool_calls(text: str, reply_id: str) -> tuple[str, list[dict[str, Any]]]:
    """Content before the first call, and the calls. When any call is malformed, all of the text is content.

    >>> split_tool_calls('hm <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>', "r")[1][0]["function"]
    {'name': 'add', 'arguments': '{"a": 1}'}
    >>> split_tool_calls("<tool_call>{oops</tool_call>", "r")
    ('<tool_call>{oops</tool_call>', [])
    """
    calls: list[dict[str, Any]] = []
    for index, match in enumerate(_CALL.finditer(text)):
        try:
            call = json.loads(match.group(1))
            function = {"name": str(call["name"]), "arguments": json.dumps(call.get("arguments", {}))}
        except (ValueError, KeyError, TypeError):
            return text, []
        calls.append({"id": f"call_{reply_id}_{index}", "type": "function", "function": function})
    return (text[: text.index(OPENING)].rstrip() if calls else text), calls
