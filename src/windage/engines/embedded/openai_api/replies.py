"""Replies of the OpenAI-compatible routes, as plain dictionaries. Every choice carries its tokens (capture)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from windage.engines.embedded.model import ServedModel

__all__ = ["capture", "chat_logprobs", "completion_logprobs", "finish_word", "usage"]


def capture(ids: Sequence[int], logprobs: Sequence[float], versions: Sequence[int]) -> dict[str, list[Any]]:
    """What a trainer needs of a choice, token by token: extra fields that OpenAI's own replies do not have."""
    return {"token_ids": list(ids), "token_logprobs": _plain(logprobs), "policy_versions": list(versions)}


def chat_logprobs(model: ServedModel, ids: Sequence[int], logprobs: Sequence[float]) -> dict[str, Any]:
    """The standard field of a chat choice."""
    return {
        "content": [
            {"token": text, "logprob": value, "bytes": list(text.encode()), "top_logprobs": []}
            for text, value in zip(map(model.text_of, ids), _plain(logprobs), strict=True)
        ],
        "refusal": None,
    }


def completion_logprobs(model: ServedModel, ids: Sequence[int], logprobs: Sequence[float]) -> dict[str, Any]:
    """The standard field of a completion choice."""
    tokens = [model.text_of(token) for token in ids]
    offsets = [0]
    for text in tokens:
        offsets.append(offsets[-1] + len(text))
    return {
        "tokens": tokens,
        "token_logprobs": _plain(logprobs),
        "top_logprobs": None,
        "text_offset": offsets[:-1],
    }


def finish_word(reason: str) -> str:
    """The word OpenAI's clients know; an aborted completion is one that was cut."""
    return "length" if reason == "aborted" else reason


def usage(prompt: int, completion: int) -> dict[str, int]:
    """Token counts."""
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _plain(logprobs: Sequence[float]) -> list[float | None]:
    """JSON has no NaN: null marks a log-prob that is not a number."""
    return [float(value) if math.isfinite(value) else None for value in logprobs]
