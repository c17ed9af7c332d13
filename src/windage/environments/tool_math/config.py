"""ToolMathConfig: verifiable arithmetic with a calculator or Python tool. No torch here."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

__all__ = ["ToolMathConfig"]


class ToolMathConfig(BaseModel):
    """Which problems, which tool and which format."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["tool_math"] = "tool_math"
