"""Bodies of the native routes (msgpack by ``records.codec``); shared by server and client, without torch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from windage.engines.protocol import RunningPolicy

__all__ = ["BeginUpdate", "CommitUpdate", "ScoreRequest"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRequest:
    """Body of ``/score``."""

    token_ids: list[NDArray[np.int32]]
    temperature: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginUpdate:
    """Body of ``/begin_update``."""

    version: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitUpdate:
    """Body of ``/commit_update``."""

    version: int
    running: RunningPolicy = "drain"
