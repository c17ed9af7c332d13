"""The chunked head: the numbers of log_softmax, and the memory of a chunk (trap 50)."""

import subprocess
import sys

import pytest
import torch

from windage.learner.head import token_logprobs


def oracle(hidden, weight, bias, ids, temperature, soft_cap):
    logits = (hidden.double() @ weight.double().T) + (0 if bias is None else bias.double())
    if soft_cap is not None:
        logits = soft_cap * torch.tanh(logits / soft_cap)
    everything = torch.log_softmax(logits / temperature, -1)
    return everything.gather(1, ids[:, None])[:, 0], -(everything.exp() * everything).sum(-1)


@pytest.mark.parametrize("chunk", [1, 3, 7, 100, 0])
@pytest.mark.parametrize(("temperature", "bias", "soft_cap"), [(1.0, False, None), (0.7, True, None), (1.3, True, 5.0)])
def test_values_and_gradients_are_those_of_log_softmax(chunk, temperature, bias, soft_cap):
    draw = torch.Generator().manual_seed(0)
    hidden = torch.randn(17, 8, generator=draw, requires_grad=True)
    weight = torch.randn(29, 8, generator=draw, requires_grad=True)
    offset = torch.randn(29, generator=draw, requires_grad=True) if bias else None
    ids = torch.randint(0, 29, (17,), generator=draw)
    upstream = torch.randn(17, generator=draw)
    leaves = [leaf for leaf in (hidden, weight, offset) if leaf is not None]

    got, entropy = token_logprobs(
        hidden=hidden,
        weight=weight,
        bias=offset,
        token_ids=ids,
        temperature=temperature,
        soft_cap=soft_cap,
        chunk=chunk,
        entropy=True,
    )
    want, spread = oracle(hidden, weight, offset, ids, temperature, soft_cap)
    torch.testing.assert_close(got.double(), want, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(entropy.double(), spread, atol=1e-5, rtol=1e-5)
    for mine, theirs in zip(
        torch.autograd.grad((got * upstream).sum(), leaves),
        torch.autograd.grad((want * upstream.double()).sum(), leaves),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)


def test_frozen_head_gets_no_gradient_buffer():
    hidden = torch.randn(4, 6, requires_grad=True)
    weight = torch.randn(11, 6)
    token_logprobs(hidden=hidden, weight=weight, bias=None, token_ids=torch.tensor([0, 1, 2, 3]))[0].sum().backward()
    assert weight.grad is None
    assert torch.isfinite(hidden.grad).all()


def test_bf16_products_keep_float32_log_softmax():
    hidden = torch.randn(64, 32).bfloat16()
    weight = torch.randn(500, 32)
    ids = torch.randint(0, 500, (64,))
    got, _ = token_logprobs(hidden=hidden, weight=weight, bias=None, token_ids=ids)
    want, _ = oracle(hidden, weight.bfloat16(), None, ids, 1.0, None)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), want, atol=0.1, rtol=0.02)


def test_no_tokens_is_legal():
    weight = torch.randn(11, 6, requires_grad=True)
    got, _ = token_logprobs(
        hidden=torch.zeros(0, 6), weight=weight, bias=None, token_ids=torch.zeros(0, dtype=torch.long)
    )
    got.sum().backward()
    assert got.shape == (0,)
    assert not weight.grad.any()


_PEAK = """
import resource, torch
from windage.learner.head import token_logprobs
torch.set_num_threads(1)
tokens, vocab, width = 4096, 32768, 16
hidden = torch.randn(tokens, width, requires_grad=True)
weight = torch.randn(vocab, width, requires_grad=True)
ids = torch.randint(0, vocab, (tokens,))
token_logprobs(hidden=hidden[:8], weight=weight, bias=None, token_ids=ids[:8])[0].sum().backward()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
token_logprobs(hidden=hidden, weight=weight, bias=None, token_ids=ids, chunk=128)[0].sum().backward()
print(1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before))
"""


@pytest.mark.process
def test_peak_memory_is_a_chunk_not_all_logits():
    out = subprocess.run([sys.executable, "-c", _PEAK], capture_output=True, text=True, check=True)
    all_logits = 4096 * 32768 * 4
    assert int(out.stdout) < all_logits / 4
