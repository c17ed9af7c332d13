"""Request bodies of the OpenAI-compatible routes: what is served, and a refusal of everything else by name."""

from __future__ import annotations

import json
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from windage.engines.protocol import Sampling
from windage.errors import EngineError, explain

__all__ = ["ChatBody", "CompletionBody", "parse"]

B = TypeVar("B", bound="_Body")


class _StreamOptions(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)
    include_usage: bool = False


class _Body(BaseModel):
    """Fields of both routes. Fields of type ``Literal`` are options of the original that only mean "off" here."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    n: int | None = Field(default=1, ge=1, le=1024)
    stream: bool | None = False
    stream_options: _StreamOptions | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    seed: int | None = None
    # No effect on what is sampled.
    user: str | None = None
    metadata: dict[str, Any] | None = None
    store: bool | None = None
    service_tier: str | None = None
    return_token_ids: bool | None = None
    # Served at their neutral value only.
    presence_penalty: Literal[0, None] = None
    frequency_penalty: Literal[0, None] = None
    logit_bias: dict[str, Literal[0]] | None = None

    @field_validator("presence_penalty", "frequency_penalty", mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        return 0 if value == 0 else value

    @property
    def copies(self) -> int:
        """Completions of each prompt."""
        return self.n or 1

    @property
    def stops(self) -> tuple[str, ...]:
        """Stop strings."""
        return (self.stop,) if isinstance(self.stop, str) else tuple(self.stop or ())

    def sampling(self, max_tokens: int, eos_ids: tuple[int, ...], copy: int) -> Sampling:
        """Sampling of the ``copy``-th completion; with a seed, copies differ and are reproducible."""
        return Sampling(
            max_tokens=max_tokens,
            temperature=1.0 if self.temperature is None else self.temperature,
            top_p=1.0 if self.top_p is None else self.top_p,
            top_k=max(self.top_k or 0, 0),
            stop_token_ids=(*(self.stop_token_ids or ()), *(() if self.ignore_eos else eos_ids)),
            stop=self.stops,
            seed=None if self.seed is None else self.seed + copy * 1_000_003,
        )


class CompletionBody(_Body):
    """``POST /v1/completions``. ``logprobs`` 0 or 1: the sampled tokens' own log-probs."""

    prompt: str | list[int] | list[str] | list[list[int]]
    max_tokens: int | None = 16
    logprobs: Literal[0, 1] | bool | None = None
    echo: Literal[False, None] = None
    suffix: Literal["", None] = None
    best_of: Literal[1, None] = None

    @property
    def prompts(self) -> list[str] | list[list[int]]:
        """The prompts, as a list."""
        if isinstance(self.prompt, str):
            return [self.prompt]
        if self.prompt and isinstance(self.prompt[0], int):
            return [self.prompt]  # type: ignore[list-item]
        return self.prompt  # type: ignore[return-value]

    @property
    def wants_logprobs(self) -> bool:
        """Whether the standard ``logprobs`` field is filled."""
        return self.logprobs is not None and self.logprobs is not False


class ChatBody(_Body):
    """``POST /v1/chat/completions``."""

    messages: list[dict[str, Any]] = Field(min_length=1)
    tools: list[dict[str, Any]] | None = None
    tool_choice: Literal["auto", "none", None] = None
    parallel_tool_calls: bool | None = None
    max_tokens: int | None = None
    max_completion_tokens: int | None = None
    logprobs: bool | None = None
    top_logprobs: Literal[0, None] = None
    response_format: dict[Literal["type"], Literal["text"]] | None = None
    chat_template_kwargs: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        if self.max_tokens is not None and self.max_completion_tokens is not None:
            raise ValueError("max_tokens and max_completion_tokens are two names of one limit; give one")
        return self

    @property
    def limit(self) -> int | None:
        """Most tokens to sample; None = what the context leaves."""
        return self.max_tokens if self.max_completion_tokens is None else self.max_completion_tokens

    @property
    def offered_tools(self) -> list[dict[str, Any]] | None:
        """Tools the model may call."""
        return None if self.tool_choice == "none" else self.tools or None

    def template_messages(self) -> list[dict[str, Any]]:
        """Messages as chat templates expect them: text content as one string, tool arguments as objects.

        Raises:
            EngineError: a part that is not text.
        """
        return [_template_message(message) for message in self.messages]


def parse(kind: type[B], payload: bytes) -> B:
    """Check a body.

    Raises:
        EngineError: naming every field that is unknown or has a value that is not served.
    """
    try:
        return kind.model_validate_json(payload)
    except ValidationError as error:
        wrong = [
            f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']} (got {e['input']!r:.80})" for e in error.errors()
        ]
        raise EngineError(explain("the request is not one this engine serves", got="; ".join(wrong[:8]))) from error


def _template_message(message: dict[str, Any]) -> dict[str, Any]:
    plain = dict(message)
    content = plain.get("content")
    if isinstance(content, list):
        parts: list[Any] = content
        if any(not isinstance(part, dict) or part.get("type") != "text" for part in parts):
            raise EngineError(explain("only text content is served", got=[str(part)[:40] for part in parts]))
        plain["content"] = "".join(part["text"] for part in parts)
    if plain.get("tool_calls"):
        plain["tool_calls"] = [_template_call(call) for call in plain["tool_calls"]]
    return plain


def _template_call(call: dict[str, Any]) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            function["arguments"] = json.loads(arguments)
        except ValueError as error:
            raise EngineError(explain("tool call arguments are not JSON", got=arguments[:80])) from error
    return {**call, "function": function}
