"""The three modes as settings: ``sync``, ``lagged(k)`` and ``async(staleness, window, in_flight)``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from windage.errors import ConfigError, explain

__all__ = ["AsyncMode", "LaggedMode", "ModeConfig", "SyncMode"]

_DETERMINISTIC = "Bit-reproducible from the seed; null: the mode's own default (printed by --dry-run)."


class SyncMode(BaseModel):
    """Generate a batch, train on it, publish, repeat: staleness 0."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["sync"] = "sync"
    deterministic: bool | None = Field(default=None, description=_DETERMINISTIC)

    @property
    def is_deterministic(self) -> bool:
        """Resolved ``deterministic``: true unless switched off."""
        return self.deterministic is not False


class LaggedMode(BaseModel):
    """Every rollout comes from exactly ``k`` published versions ago: the instrument for staleness studies."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["lagged"] = "lagged"
    k: int = Field(default=1, ge=0, le=64, description="Lag in published versions, 0 to 64.")
    deterministic: bool | None = Field(default=None, description=_DETERMINISTIC)

    @property
    def is_deterministic(self) -> bool:
        """Resolved ``deterministic``: true unless switched off."""
        return self.deterministic is not False


class AsyncMode(BaseModel):
    """Rollouts and training run side by side; admission keeps the staleness below the derived bound."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Literal["async"] = "async"
    staleness: int = Field(default=2, ge=0, description="Wanted staleness S, in published versions.")
    window: int = Field(
        default=0, ge=0, description="Look-ahead window W in groups, from which a batch is filled; 0: groups_per_step."
    )
    in_flight: bool = Field(
        default=False,
        description="Swap weights under running requests (versions then differ inside a row) instead of draining them.",
    )
    deterministic: bool | None = Field(default=None, description=_DETERMINISTIC)

    @property
    def is_deterministic(self) -> bool:
        """Resolved ``deterministic``: true only with staleness 0, where nothing depends on timing."""
        return self.staleness == 0 and self.deterministic is not False

    @model_validator(mode="after")
    def _possible(self) -> AsyncMode:
        if self.deterministic and self.staleness > 0:
            raise ConfigError(
                explain(
                    "mode.deterministic cannot hold in async mode with staleness > 0: who finishes first decides",
                    got=f"staleness={self.staleness}",
                    do=f"use mode=lagged mode.k={self.staleness} for a reproducible staleness study",
                )
            )
        if self.in_flight and self.staleness == 0:
            raise ConfigError(
                explain(
                    "mode.in_flight needs staleness >= 1: with 0 no request may run across a publish",
                    do="set mode.staleness=1 or mode.in_flight=false",
                )
            )
        return self


ModeConfig = Annotated[SyncMode | LaggedMode | AsyncMode, Field(discriminator="name")]
