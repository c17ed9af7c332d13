"""ToolMathConfig: which problems, which tool, which format, which limits. No torch here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from windage.environments.tool_math.families import FAMILIES, WITH_EXPRESSION
from windage.errors import explain

__all__ = [
    "ArithmeticSource",
    "FileSource",
    "ReasoningGymSource",
    "SourceConfig",
    "ToolLimits",
    "ToolMathConfig",
    "WordProblemSource",
]


class _Source(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    share: int = Field(default=1, ge=1, description="Weight in a mixture: tasks of this source in each round.")

    @property
    def has_programs(self) -> bool:
        """Whether its problems carry the program that computes the answer: only those can be demonstrated."""
        return True


class ArithmeticSource(_Source):
    """``a op b``: both operands uniform over the numbers with the drawn number of digits."""

    name: Literal["arithmetic"] = "arithmetic"
    operators: str = Field(default="+-*", min_length=1, pattern=r"^[+\-*]+$", description="Which of + - *.")
    min_digits: int = Field(default=1, ge=1, le=18)
    max_digits: int = Field(default=3, ge=1, le=18)

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_digits > self.max_digits:
            raise ValueError(
                explain("digits are reversed", got=(self.min_digits, self.max_digits), expected="min <= max")
            )
        return self


class WordProblemSource(_Source):
    """Short stories about buying, sharing, walking and saving, with an integer answer."""

    name: Literal["word_problems"] = "word_problems"
    largest: int = Field(default=99, ge=9, le=10**9, description="Largest number that a story mentions.")


class ReasoningGymSource(_Source):
    """One family of reasoning-gym. Only families whose scorer was seen to work are allowed."""

    name: Literal["reasoning_gym"] = "reasoning_gym"
    family: str = Field(description="Name of the family, e.g. chain_sum.")
    settings: dict[str, Any] = Field(default_factory=dict[str, Any], description="The family's own settings.")

    @model_validator(mode="after")
    def _allowed(self) -> Self:
        if self.family not in FAMILIES:
            raise ValueError(
                explain("reasoning-gym family is not on the allow-list", got=self.family, expected=", ".join(FAMILIES))
            )
        return self

    @property
    def has_programs(self) -> bool:
        """Some families give an expression, most give answers only."""
        return self.family in WITH_EXPRESSION


class FileSource(_Source):
    """Rows of a JSONL or Parquet file with the columns ``question`` and ``answer``."""

    name: Literal["file"] = "file"
    path: Path = Field(description="Training rows (.jsonl, .json, .parquet).")
    held_out_path: Path | None = Field(default=None, description="Evaluation rows; None: a share of ``path``.")
    held_out_share: float = Field(default=0.125, gt=0, lt=1, description="Share of questions kept for evaluation.")

    @property
    def has_programs(self) -> bool:
        """Files hold answers only."""
        return False


SourceConfig = Annotated[
    ArithmeticSource | WordProblemSource | ReasoningGymSource | FileSource, Field(discriminator="name")
]
"""A union on ``name``: arithmetic, word_problems, reasoning_gym, file."""


class ToolLimits(BaseModel):
    """What one tool call may use. Beyond it the *model's code* is at fault and reads an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    seconds: float = Field(default=2.0, gt=0, description="Time of one call.")
    memory_mb: int = Field(default=64, ge=1, description="Heap of one call, MiB.")
    output_chars: int = Field(default=1000, ge=8, description="Longest result that is shown; the rest is cut.")
    code_chars: int = Field(default=10_000, ge=8, description="Longest program that is run.")
    workers: int = Field(default=2, ge=1, le=256, description="Sandbox processes; more calls wait for a free one.")
    wait_seconds: float = Field(default=60.0, gt=0, description="Longest wait for a free sandbox.")


class ToolMathConfig(BaseModel):
    """Verifiable problems with a Python tool. Defaults are the quickstart's (Windage)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["tool_math"] = "tool_math"
    sources: tuple[SourceConfig, ...] = Field(
        default=(ArithmeticSource(),), min_length=1, description="Where problems come from; several are interleaved."
    )
    format: Literal["plain", "tool_call", "fenced"] = Field(
        default="plain",
        description="plain: 12+34? → <12+34> → =46| → #46, for tiny models. tool_call: JSON in <tool_call> tags, with "
        "the schema in the chat template. fenced: a ```python block, for models without a tool format.",
    )
    system_prompt: str | None = Field(default=None, description="None: the format's own instructions; '': none.")
    tool: ToolLimits = Field(default_factory=ToolLimits)
    tool_seconds: float = Field(
        default=0.0, ge=0, description="Artificial latency of every tool call, for measuring asynchrony."
    )
    direct_share: float = Field(
        default=0.0,
        ge=0,
        le=1,
        description="Share of the demonstrations that answer without the tool: a policy that starts by guessing half "
        "the time has something to learn that rewards can teach fast.",
    )
    judges: int = Field(default=1, ge=1, le=64, description="Scoring processes, started when first needed.")
    reward_seconds: float = Field(default=20.0, gt=0, description="Deadline of scoring one answer.")

    @model_validator(mode="after")
    def _plain_is_arithmetic(self) -> Self:
        strange = [source.name for source in self.sources if not isinstance(source, ArithmeticSource)]
        if self.format == "plain" and strange:
            raise ValueError(
                explain(
                    "format=plain writes bare expressions",
                    got=strange,
                    expected="the source arithmetic",
                    do="set environment.format=tool_call or fenced",
                )
            )
        return self
