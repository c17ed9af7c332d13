"""The sampler draws from the distribution whose log-probs it reports; the oracle is a plain float64 loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from windage.engines.embedded.sampler import Knobs, sample


def knobs(rows, *, temperature=1.0, top_k=0, top_p=1.0, entropy=False):
    return Knobs(
        temperature=torch.full((rows,), temperature),
        top_k=torch.full((rows,), top_k, dtype=torch.long),
        top_p=torch.full((rows,), top_p, dtype=torch.float64),
        any_greedy=temperature == 0,
        any_truncated=top_k > 0 or top_p < 1,
        any_entropy=entropy,
    )


def processed(logits, temperature, top_k, top_p):
    """Log-probs by the definition, float64: temperature, top-k, top-p, renormalised; -inf where cut."""
    scaled = np.asarray(logits, dtype=np.float64) / temperature
    order = np.argsort(-scaled, kind="stable")
    kept = list(order[: top_k or len(order)])
    mass = np.exp(scaled[kept] - scaled.max())
    mass /= mass.sum()
    nucleus, total = [], 0.0
    for token, share in zip(kept, mass, strict=True):
        if total >= top_p:
            break
        nucleus.append(token)
        total += share
    out = np.full(len(scaled), -np.inf)
    out[nucleus] = scaled[nucleus] - scaled.max()
    out[nucleus] -= np.log(np.exp(out[nucleus]).sum())
    return out


CASES = [(1.0, 0, 1.0), (0.7, 0, 1.0), (1.0, 5, 1.0), (1.0, 0, 0.8), (1.3, 20, 0.6), (1.0, 1, 1.0), (2.0, 0, 1e-6)]


@pytest.mark.parametrize(("temperature", "top_k", "top_p"), CASES)
@pytest.mark.parametrize("words", [7, 300, 3000])
def test_logprobs_and_entropy_match_the_definition(temperature, top_k, top_p, words):
    draw = np.random.default_rng(0)
    logits = torch.from_numpy(draw.normal(0, 3, size=(40, words)).astype(np.float32))
    uniform = torch.from_numpy(draw.random(40))
    got = sample(
        logits=logits,
        uniform=uniform,
        knobs=knobs(40, temperature=temperature, top_k=top_k, top_p=top_p, entropy=True),
    )
    for row in range(40):
        expected = processed(logits[row].numpy(), temperature, top_k, top_p)
        assert np.isfinite(expected[got.ids[row]]), "drew a token outside the kept set"
        assert abs(expected[got.ids[row]] - float(got.logprobs[row])) < 2e-5
        kept = expected[np.isfinite(expected)]
        assert abs(-(np.exp(kept) * kept).sum() - float(got.entropy[row])) < 1e-4


@pytest.mark.parametrize(("temperature", "top_k", "top_p"), CASES[:5])
def test_frequencies(temperature, top_k, top_p):
    """A grid of uniforms is an exact inverse CDF: counts differ from n·p by at most one or two."""
    logits = torch.from_numpy(np.random.default_rng(1).normal(0, 1.5, size=12).astype(np.float32))
    count = 4000
    uniform = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    got = sample(
        logits=logits.expand(count, -1),
        uniform=uniform,
        knobs=knobs(count, temperature=temperature, top_k=top_k, top_p=top_p),
    )
    share = np.bincount(got.ids.numpy(), minlength=12) / count
    expected = np.exp(processed(logits.numpy(), temperature, top_k, top_p))
    np.testing.assert_allclose(share, expected, atol=1.5 / count)


def test_ends_of_the_uniform_interval_draw_a_token_with_mass():
    logits = torch.tensor([[-torch.inf, 0.0, 1.0, -torch.inf]]).expand(2, -1)
    got = sample(logits=logits, uniform=torch.tensor([0.0, 1 - 2**-53], dtype=torch.float64), knobs=knobs(2))
    assert got.ids.tolist() == [1, 2]


def test_greedy_takes_the_lowest_of_equals():
    got = sample(
        logits=torch.tensor([[1.0, 3.0, 3.0]]),
        uniform=torch.tensor([0.99], dtype=torch.float64),
        knobs=knobs(1, temperature=0.0),
    )
    assert (got.ids.tolist(), got.logprobs.tolist()) == ([1], [0.0])


def test_rows_with_different_knobs_do_not_mix():
    logits = torch.from_numpy(np.random.default_rng(2).normal(0, 2, size=(4, 50)).astype(np.float32))
    uniform = torch.tensor([0.3, 0.5, 0.7, 0.9], dtype=torch.float64)
    settings = [(1.0, 0, 1.0), (0.0, 0, 1.0), (1.5, 4, 1.0), (0.5, 0, 0.5)]
    mixed = sample(
        logits=logits,
        uniform=uniform,
        knobs=Knobs(
            temperature=torch.tensor([s[0] for s in settings]),
            top_k=torch.tensor([s[1] for s in settings]),
            top_p=torch.tensor([s[2] for s in settings], dtype=torch.float64),
            any_greedy=True,
            any_truncated=True,
            any_entropy=False,
        ),
    )
    for row, (temperature, top_k, top_p) in enumerate(settings):
        alone = sample(
            logits=logits[row : row + 1],
            uniform=uniform[row : row + 1],
            knobs=knobs(1, temperature=temperature, top_k=top_k, top_p=top_p),
        )
        assert int(alone.ids) == int(mixed.ids[row])
        assert float(alone.logprobs) == pytest.approx(float(mixed.logprobs[row]), abs=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 0.0])
def test_nan_logits_give_a_nan_logprob(temperature):
    """The learner drops and counts it; a plausible number would hide broken weights."""
    logits = torch.zeros(1, 10)
    logits[0, 3] = torch.nan
    got = sample(
        logits=logits, uniform=torch.tensor([0.5], dtype=torch.float64), knobs=knobs(1, temperature=temperature)
    )
    assert 0 <= int(got.ids) < 10
    assert torch.isnan(got.logprobs).all()
