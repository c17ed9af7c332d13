"""reasoning-gym families that tool_math accepts: their scorer gives the own answer 1.0, junk less, and never raises."""

from __future__ import annotations

__all__ = ["FAMILIES", "WITH_EXPRESSION"]

FAMILIES = (
    "aiw",
    "base_conversion",
    "basic_arithmetic",
    "bitwise_arithmetic",
    "calendar_arithmetic",
    "chain_sum",
    "coin_flip",
    "complex_arithmetic",
    "count_bits",
    "count_primes",
    "decimal_arithmetic",
    "decimal_chain_sum",
    "dice",
    "fraction_simplification",
    "gcd",
    "gsm_symbolic",
    "lcm",
    "leg_counting",
    "letter_counting",
    "number_filtering",
    "number_format",
    "number_sequence",
    "number_sorting",
    "power_function",
    "products",
    "simple_equations",
    "simple_geometry",
    "spell_backward",
    "time_intervals",
    "word_sorting",
)
"""Left out: families that score their own answer 0, give junk 1.0, raise on junk, or are not reproducible; and puzzles
that are neither arithmetic nor short text. A test plays every one of these."""

WITH_EXPRESSION = ("chain_sum", "products")
"""Families whose entries carry a Python expression that prints exactly the answer: they can be demonstrated."""
