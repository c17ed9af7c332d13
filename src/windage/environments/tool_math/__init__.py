"""Verifiable arithmetic and word problems with a sandboxed Python tool."""

from windage.environments.tool_math.config import ToolMathConfig
from windage.environments.tool_math.factory import ToolMath
from windage.environments.tool_math.tasks import ToolMathTasks

__all__ = ["ToolMath", "ToolMathConfig", "ToolMathTasks"]
