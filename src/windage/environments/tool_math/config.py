"""ToolMathConfig: verifiable arithmetic with a calculator or Python tool. No torch here."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from windage.errors import explain

__all__ = ["ArithmeticSource", "FileSource", "ReasoningGymSource", "ToolLimits", "ToolMathConfig"]

_STRICT = ConfigDict(extra="forbid", frozen=True)
Operator = Literal["+", "-", "*"]


class ArithmeticSource(BaseModel):
    """Problems of the built-in generator, without end: ``12+345``, or a word problem around it."""

    model_config = _STRICT

    name: Literal["arithmetic"] = "arithmetic"
    low: int = Field(default=10, ge=0, description="Smallest operand.")
    high: int = Field(default=999, ge=0, le=999_999, description="Largest operand.")
    operators: tuple[Operator, ...] = Field(default=("+", "-", "*"), min_length=1, description="Drawn evenly.")
    word_problems: float = Field(default=0.0, ge=0, le=1, description="Share of problems told in words.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.low > self.high:
            raise ValueError(
                explain(
                    "arithmetic range is reversed", got=(self.low, self.high), expected="low <= high", do="swap them"
                )
            )
        return self


class ReasoningGymSource(BaseModel):
    """Problems of reasoning-gym families, without end; each is scored by its family's own scorer."""

    model_config = _STRICT

    name: Literal["reasoning_gym"] = "reasoning_gym"
    families: tuple[str, ...] = Field(min_length=1, description="Drawn evenly; only families that score reliably.")
    settings: dict[str, dict[str, Any]] = Field(
        default_factory=dict, description="Generator settings by family, e.g. {chain_sum: {max_terms: 3}}."
    )


class FileSource(BaseModel):
    """Problems of a JSONL or Parquet file with the columns ``question`` and ``answer``."""

    model_config = _STRICT

    name: Literal["file"] = "file"
    path: str = Field(min_length=1, description="*.jsonl or *.parquet.")


Source = Annotated[ArithmeticSource | ReasoningGymSource | FileSource, Field(discriminator="name")]


class ToolLimits(BaseModel):
    """What one tool call, and one episode, may use."""

    model_config = _STRICT

    seconds: float = Field(default=2.0, gt=0, description="Time of one tool call.")
    memory_mb: int = Field(default=64, ge=1, description="Memory of the called code.")
    output_chars: int = Field(default=512, ge=1, description="Characters of output shown to the model.")
    calls: int = Field(default=4, ge=0, description="Tool calls of an episode; one more ends it with reward 0.")


class ToolMathConfig(BaseModel):
    """Which problems, which tool and which format. Defaults without a source are ours (Windage)."""

    model_config = _STRICT

    name: Literal["tool_math"] = "tool_math"
    source: Source = Field(default_factory=ArithmeticSource)
    format: Literal["plain", "template", "fenced"] = Field(
        default="plain",
        description="plain: <12+345> for character models; template: <tool_call> JSON; fenced: ```python blocks.",
    )
    direct_share: float = Field(
        default=0.0, ge=0, le=1, description="Share of demonstrations that answer without tool."
    )
    held_out_share: float = Field(default=1 / 16, gt=0, lt=1, description="Share of problems reserved for evaluation.")
    tool: ToolLimits = Field(default_factory=ToolLimits)
    tool_seconds: float = Field(default=0.0, ge=0, description="Artificial latency of a tool call, for benchmarks.")
    workers: int = Field(default=2, ge=1, le=64, description="Processes for tools, and as many for rewards.")
    reward_seconds: float = Field(
        default=10.0, gt=0, description="Deadline of one reward; after it the sample is invalid."
    )
    start_seconds: float = Field(default=120.0, gt=0, description="Deadline for a worker process to start.")

    @field_validator("source", mode="before")
    @classmethod
    def _named(cls, given: Any) -> Any:
        """``source: {low: 1}`` without a name means the generator."""
        return {"name": "arithmetic", **given} if isinstance(given, dict) and "name" not in given else given

    @model_validator(mode="after")
    def _plain_is_digits(self) -> Self:
        source = self.source
        if self.format == "plain" and (not isinstance(source, ArithmeticSource) or source.word_problems > 0):
            raise ValueError(
                explain(
                    "format plain knows digits and operators only",
                    got=f"source {source.name}" + (" with word problems" if source.name == "arithmetic" else ""),
                    expected="source arithmetic with word_problems=0",
                    do="set environment.format=fenced or template",
                )
            )
        return self
