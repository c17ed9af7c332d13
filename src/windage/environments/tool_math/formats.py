"""From settings to a format."""

from __future__ import annotations

from windage.environments.tool_math.config import ToolMathConfig
from windage.environments.tool_math.fenced_format import FencedFormat
from windage.environments.tool_math.format import Format
from windage.environments.tool_math.plain_format import PlainFormat
from windage.environments.tool_math.tool_call_format import ToolCallFormat

__all__ = ["format_of"]


def format_of(config: ToolMathConfig) -> Format:
    """The format that ``config`` names."""
    match config.format:
        case "plain":
            return PlainFormat()
        case "tool_call":
            return ToolCallFormat(config.system_prompt)
        case "fenced":
            return FencedFormat(config.system_prompt)
