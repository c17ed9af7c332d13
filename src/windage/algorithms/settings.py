"""Settings that algorithms share: types with their checks. No torch here."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

__all__ = [
    "Band",
    "ClipMargins",
    "CriticSettings",
    "Interval",
    "Lambda",
    "LengthAdaptive",
    "Settings",
    "TruncationLimit",
    "Unit",
]


class Settings(BaseModel):
    """Base: unknown keys are errors, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _holds_one(bounds: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= bounds[0] <= 1 <= bounds[1]:
        raise ValueError("an interval with 0 <= low <= 1 <= high")
    return bounds


def _open_around_one(bounds: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= bounds[0] < 1 < bounds[1]:
        raise ValueError("an open band with 0 <= low < 1 < high")
    return bounds


def _margins(margins: tuple[float, float]) -> tuple[float, float]:
    if not (0 < margins[0] <= 1 and margins[1] > 0):
        raise ValueError("margins below and above 1: (0 < low <= 1, high > 0)")
    return margins


Unit = Annotated[float, Field(ge=0, le=1)]
Interval = Annotated[tuple[float, float], AfterValidator(_holds_one)]
Band = Annotated[tuple[float, float], AfterValidator(_open_around_one)]
ClipMargins = Annotated[tuple[float, float], AfterValidator(_margins)]
TruncationLimit = Annotated[float, Field(gt=0)]


class LengthAdaptive(Settings):
    """``λ = max(0, 1 - 1 / (alpha · L))`` for an episode of L action tokens."""

    alpha: float = Field(gt=0, description="1.5 in SAO, 0.05 in VAPO.")


Lambda = Unit | LengthAdaptive


class CriticSettings(Settings):
    """What every algorithm with a critic has."""

    gamma: Unit = Field(default=1.0, description="Discount per action token.")
    whiten: bool = Field(default=True, description="Advantages to mean 0 and variance 1 over the batch's tokens.")
    value_clip: float | None = Field(default=None, gt=0, description="Largest step of a value from its entry value.")
