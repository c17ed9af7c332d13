"""Generation: one request on its way through the engine, and the completion it becomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from windage.engines.embedded.slots import Slot
from windage.engines.embedded.stop_strings import StopStrings
from windage.engines.protocol import Completion, FinishReason, GenerateRequest

__all__ = ["Generation"]


@dataclass(eq=False, slots=True, kw_only=True)
class Generation:
    """``ids`` are prompt and sampled tokens; the other lists run along the sampled ones.

    ``on_token(generation)`` and ``on_done(generation)`` are called by the thread that samples.
    """

    request: GenerateRequest
    seed: int
    on_done: Callable[[Generation], None]
    on_token: Callable[[Generation], None] | None = None
    stop_strings: StopStrings | None = None
    slot: Slot | None = None
    finish_reason: FinishReason | None = None
    ids: list[int] = field(init=False)
    prompt: int = field(init=False)
    stop_ids: frozenset[int] = field(init=False)
    logprobs: list[float] = field(default_factory=list[float])
    versions: list[int] = field(default_factory=list[int])
    entropy: list[float] = field(default_factory=list[float])
    routes: list[Any] = field(default_factory=list[Any])

    def __post_init__(self) -> None:
        self.ids = self.request.prompt_ids.tolist()
        self.prompt = len(self.ids)
        self.stop_ids = frozenset(self.request.sampling.stop_token_ids)

    @property
    def sampled(self) -> int:
        """Tokens sampled so far."""
        return len(self.ids) - self.prompt

    @property
    def need(self) -> int:
        """Positions it may take in the cache."""
        return self.prompt + self.request.sampling.max_tokens

    @property
    def left_to_compute(self) -> int:
        """Positions whose keys and values are still missing; 1 while decoding."""
        assert self.slot is not None
        return len(self.ids) - self.slot.computed

    def append(self, token: int, logprob: float, version: int, entropy: float | None) -> None:
        """Take a sampled token; sets ``finish_reason`` when it is the last."""
        self.ids.append(token)
        self.logprobs.append(logprob)
        self.versions.append(version)
        if entropy is not None:
            self.entropy.append(entropy)
        if token in self.stop_ids or (self.stop_strings is not None and self.stop_strings.completed(self)):
            self.finish_reason = "stop"
        elif self.sampled >= self.request.sampling.max_tokens:
            self.finish_reason = "length"

    def completion(self) -> Completion:
        """The record that goes back (without text)."""
        assert self.finish_reason is not None
        sampling = self.request.sampling
        return Completion(
            request_id=self.request.request_id,
            token_ids=np.array(self.ids[self.prompt :], dtype=np.int32),
            logprobs=np.array(self.logprobs, dtype=np.float32),
            policy_version=np.array(self.versions, dtype=np.int32),
            finish_reason=self.finish_reason,
            entropy=np.array(self.entropy, dtype=np.float32) if sampling.entropy else None,
            routes=np.concatenate(self.routes, axis=1) if sampling.routes and self.routes else None,
        )
