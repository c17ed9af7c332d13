"""Off-policy corrections: what a token of an older policy weighs, and whether it counts at all."""

from windage.corrections.decoupled import decoupled
from windage.corrections.mask import mask
from windage.corrections.ratio import LIMIT, Ratio, ratio
from windage.corrections.truncate import truncate
from windage.corrections.weight import Weight

__all__ = ["LIMIT", "Ratio", "Weight", "decoupled", "mask", "ratio", "truncate"]
