"""Engine: whatever samples tokens. Token-in, token-out; text never crosses this border.

Implementations: ``embedded`` (a server process around a Hugging Face model), later vLLM and SGLang.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from windage.errors import ConfigError, EngineError, explain

__all__ = ["Completion", "Engine", "EngineStatus", "FinishReason", "GenerateRequest", "RunningPolicy", "Sampling"]

FinishReason = Literal["stop", "length", "aborted"]
RunningPolicy = Literal["drain", "recompute", "keep"]
"""What a weight swap does to requests in generation: finish them first on the old weights (default); go on with the
new weights after recomputing their KV cache; or go on with the old KV cache (a hybrid no version can reproduce)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How to sample. ``logprobs`` are always those of the distribution really sampled from:
    temperature first, then top-k, then top-p, renormalised (traps 23). ``temperature=0`` is greedy with log-prob 0.

    ``stop`` strings end the completion at the token that completes them; that token was sampled and is kept.
    ``top_k=0`` and ``top_p=1.0`` switch truncation off. ``seed=None`` lets the engine choose.
    """

    max_tokens: int
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    stop_token_ids: tuple[int, ...] = ()
    stop: tuple[str, ...] = ()
    seed: int | None = None
    entropy: bool = False
    routes: bool = False

    def __post_init__(self) -> None:
        checks = (
            ("max_tokens", self.max_tokens, self.max_tokens >= 1, ">= 1"),
            ("temperature", self.temperature, 0.0 <= self.temperature < float("inf"), "finite and >= 0"),
            ("top_p", self.top_p, 0.0 < self.top_p <= 1.0, "in (0, 1]"),
            ("top_k", self.top_k, self.top_k >= 0, ">= 0 (0 = off)"),
        )
        for name, got, good, expected in checks:
            if not good:
                raise ConfigError(explain(f"sampling.{name} is out of range", got=got, expected=expected))


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerateRequest:
    """One prompt to continue. ``request_id`` is unique among the requests in flight."""

    request_id: str
    prompt_ids: NDArray[np.int32]
    sampling: Sampling


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """What was sampled: ids, log-probs and versions of equal length ``n``, stamped token by token.

    ``finish_reason``: ``stop`` (a stop id, which is the last token, or a stop string), ``length``, ``aborted``.
    ``text`` decodes ``token_ids`` for tools and people; it is never encoded again.
    ``routes``: experts of every input position the engine computed, [layers, prompt + n - 1 or more, k].
    """

    request_id: str
    token_ids: NDArray[np.int32]
    logprobs: NDArray[np.float32]
    policy_version: NDArray[np.int32]
    finish_reason: FinishReason
    text: str = ""
    entropy: NDArray[np.float32] | None = None
    routes: NDArray[np.integer] | None = None

    def __post_init__(self) -> None:
        lengths = (len(self.token_ids), len(self.logprobs), len(self.policy_version))
        if len(set(lengths)) != 1:
            raise EngineError(
                explain(
                    f"completion {self.request_id}: ids, log-probs and versions disagree in length",
                    got=lengths,
                    expected="equal lengths",
                )
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus:
    """What an engine says of itself. ``fingerprint`` changes whenever the loaded weights change."""

    policy_version: int
    fingerprint: str
    running: int
    waiting: int
    tokens_generated: int
    vocab_size: int
    device: str
    busy_seconds: float = 0.0


class Engine(Protocol):
    """Samples and scores tokens under the published weights.

    Raises :class:`~windage.errors.EngineUnavailable` when the process is gone (the caller may retry after a restart),
    :class:`~windage.errors.EngineError` when the request itself is refused.
    """

    async def generate(self, requests: Sequence[GenerateRequest]) -> list[Completion]:
        """Continue every prompt; the list enters the engine's schedule as one, in order. Cancelling aborts them."""
        ...

    async def score(
        self, token_ids: Sequence[NDArray[np.int32]], *, temperature: float = 1.0
    ) -> list[NDArray[np.float32]]:
        """Log-prob of each token given its prefix under the current weights; element 0 of each is NaN."""
        ...

    async def abort(self, request_ids: Sequence[str]) -> None:
        """End these requests now; their completions come back with ``finish_reason="aborted"``."""
        ...

    async def begin_update(self, version: int, path: str) -> None:
        """Load the weights in folder ``path`` beside the current ones. Sampling goes on."""
        ...

    async def commit_update(self, version: int, *, running: RunningPolicy = "drain") -> EngineStatus:
        """Swap to the weights of ``begin_update(version, …)``, reset caches, and stamp ``version`` from here on."""
        ...

    async def status(self) -> EngineStatus:
        """The engine's version, load and counters."""
        ...
