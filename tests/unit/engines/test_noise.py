"""Counter-based noise: uniform, and the same for the same seed and step, whatever the rows beside it."""

from __future__ import annotations

import numpy as np

from windage.engines.embedded.noise import derive_seed, uniforms


def splitmix(state):
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) % 2**64
    return state ^ (state >> 31)


def test_equals_integer_arithmetic():
    for seed, step in ((0, 0), (1, 5), (2**63 + 11, 1000), (-1, 3)):
        base = splitmix(seed % 2**64)
        expected = (splitmix((base + step * 0x9E3779B97F4A7C15) % 2**64) >> 11) * 2.0**-53
        assert uniforms([7, seed, 9], [1, step, 2])[1] == expected


def test_looks_uniform_over_seeds_and_over_steps():
    for draws in (uniforms(range(20_000), [0] * 20_000), uniforms([5] * 20_000, range(20_000))):
        assert ((draws >= 0) & (draws < 1)).all()
        counts = np.histogram(draws, bins=20, range=(0, 1))[0]
        assert ((counts - 1000) ** 2 / 1000).sum() < 43.8  # chi-squared, 19 degrees of freedom, 0.1 %
        assert abs(np.corrcoef(draws[:-1], draws[1:])[0, 1]) < 0.03


def test_derived_seeds_differ():
    assert len({derive_seed(seed, arrival) for seed in range(20) for arrival in range(50)}) == 1000
