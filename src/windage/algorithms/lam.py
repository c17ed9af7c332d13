"""From a λ setting to what a return estimator takes."""

from __future__ import annotations

from functools import partial

from windage.algorithms.settings import Lambda, LengthAdaptive
from windage.returns.length_adaptive import length_adaptive
from windage.returns.td import Lam

__all__ = ["lam_of"]


def lam_of(setting: Lambda) -> Lam:
    """A number, or a function that gives one a trajectory."""
    return partial(length_adaptive, alpha=setting.alpha) if isinstance(setting, LengthAdaptive) else setting
