"""Learner as the controller sees it: a process (or a distributed group) behind a few awaited calls. No torch here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from windage.records import TrainBatch

__all__ = ["Demonstration", "Learner", "LearnerStatus", "Published", "StepReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """One tokenised conversation for supervised warm start; ``mask`` marks the tokens to imitate."""

    token_ids: NDArray[np.int32]
    mask: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """What one batch did. ``outcome``:

    ``updated``     weights moved; publish next
    ``critic_only`` warm-up: only the critic moved; no version, nothing to publish
    ``skipped``     nothing moved (non-finite gradient, nothing trainable); ``reason`` says why; nothing to publish
    """

    step: int
    outcome: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    histograms: Mapping[str, Sequence[float]] = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0
    tokens_trained: int = 0
    tokens_dropped: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A committed weight folder (safetensors, marker written last) and the learner's scores of the probe prompt.

    The publisher accepts a version only when the engine, after its commit, scores ``probe_ids`` with
    ``probe_logprobs`` (trap 9), and when the fingerprint of the weights changed.
    """

    version: int
    path: str
    fingerprint: str
    probe_ids: NDArray[np.int32]
    probe_logprobs: NDArray[np.float32]
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnerStatus:
    """Where the learner stands. ``version`` counts published policies, ``step`` consumed batches."""

    version: int
    step: int
    parameters: int
    trainable: int
    device: str
    resident_bytes: int = 0


class Learner(Protocol):
    """Trains, publishes and checkpoints. Calls do not overlap. A dead process raises ``LearnerError``."""

    async def warm_start(self, demonstrations: Sequence[Demonstration], *, steps: int) -> Mapping[str, float]:
        """Supervised imitation before step 0; moves no version."""
        ...

    async def train(self, batch: TrainBatch) -> StepReport:
        """Consume one batch: entry log-probs and values, credit, then the configured optimizer updates."""
        ...

    async def publish(self, version: int) -> Published:
        """Write the current policy as ``version`` (previous + 1; the first is 0) and commit the folder."""
        ...

    async def save(self, path: str) -> None:
        """Checkpoint weights, optimizer, schedule, critic, RNG, step and version; complete or ignored."""
        ...

    async def load(self, path: str) -> LearnerStatus:
        """Restore a checkpoint exactly."""
        ...

    async def status(self) -> LearnerStatus:
        """Step, version and size."""
        ...
