"""The one recurrence: bit for bit against a float64 loop, exact gradient, and the GPU kernel under its interpreter."""

import os
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from windage.errors import RecordError
from windage.segments import Segments, forward_scan, reverse_scan

LENGTHS = st.lists(st.integers(0, 6), max_size=7)


def draw(size, seed, dtype=torch.float64):
    return torch.randn(size, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def loop(decay, increments, lengths, *, backwards):
    """The definition, in Python floats (float64)."""
    found, start = [], 0
    for length in lengths:
        order = range(start, start + length)
        row, running = {}, 0.0
        for place, token in enumerate(reversed(order) if backwards else order):
            running = increments[token] if place == 0 else increments[token] + decay[token] * running
            row[token] = running
        found += [row[token] for token in order]
        start += length
    return found


@given(LENGTHS, st.integers(0, 9))
def test_exact(lengths, seed):
    segments, size = Segments.from_lengths(lengths), sum(lengths)
    decay, increments = draw(size, seed), draw(size, seed + 10)
    for scan, backwards in ((reverse_scan, True), (forward_scan, False)):
        found = scan(decay, increments, segments.offsets)
        assert found.tolist() == loop(decay.tolist(), increments.tolist(), lengths, backwards=backwards)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_narrow_types_are_accumulated_in_float64(dtype):
    decay, increments = draw(500, 0, dtype).sigmoid(), draw(500, 1, dtype)
    found = reverse_scan(decay, increments, torch.tensor([0, 500]))
    assert found.dtype == torch.float32
    expected = loop(decay.double().tolist(), increments.double().tolist(), [500], backwards=True)
    assert torch.equal(found, torch.tensor(expected, dtype=torch.float64).float())


@pytest.mark.parametrize("lengths", [[], [0], [1], [5], [2, 0, 3, 1], [0, 4, 0]])
def test_gradient(lengths):
    seed = 0
    segments, size = Segments.from_lengths(lengths), sum(lengths)
    decay, increments = draw(size, seed).requires_grad_(), draw(size, seed + 10).requires_grad_()
    for scan in (reverse_scan, forward_scan):
        assert torch.autograd.gradcheck(lambda a, b, scan=scan: scan(a, b, segments.offsets), (decay, increments))


def test_the_decay_at_the_edge_is_never_read():
    segments = Segments.from_lengths([2, 1])
    decay = torch.tensor([0.5, torch.nan, torch.inf], requires_grad=True)
    found = segments.reverse_scan(decay, torch.tensor([1.0, 2.0, 3.0]))
    assert found.tolist() == [2.0, 2.0, 3.0]
    found.sum().backward()
    assert decay.grad.tolist() == [2.0, 0.0, 0.0]


def test_shapes_must_agree():
    with pytest.raises(RecordError, match="unequal shape"):
        reverse_scan(torch.zeros(3), torch.zeros(2), torch.tensor([0, 2]))


KERNEL = """
import torch
from windage.segments import scan_cuda
from windage.segments.scan_cpu import scan_cpu

scan_cuda._BLOCK = 8  # several blocks a row, so that the carry is tested
lengths = torch.tensor([3, 0, 18, 8, 9, 1, 0])
offsets = torch.cat([torch.zeros(1, dtype=torch.int64), lengths.cumsum(0)])
generator = torch.Generator().manual_seed(0)
for dtype, tolerance in ((torch.float32, 1e-6), (torch.float64, 1e-12)):
    decay = 1.5 * torch.rand(int(lengths.sum()), generator=generator, dtype=dtype)
    increments = torch.randn(int(lengths.sum()), generator=generator, dtype=dtype)
    decay[2], decay[3] = torch.nan, torch.inf  # last of row 0, first of row 2
    for backwards in (True, False):
        if not backwards:
            decay[2] = 0.5
        else:
            decay[3] = 0.5
        found = scan_cuda.scan_cuda(decay, increments, offsets, backwards=backwards)
        expected = torch.empty_like(found)
        scan_cpu(decay.numpy(), increments.numpy(), offsets.numpy(), expected.numpy(), backwards)
        assert torch.isfinite(expected).all()
        torch.testing.assert_close(found, expected, atol=tolerance, rtol=tolerance)
        decay[2], decay[3] = (torch.nan, torch.inf)
print("agrees")
"""


@pytest.mark.process
def test_gpu_kernel_under_its_interpreter():
    pytest.importorskip("triton")
    answer = subprocess.run(
        [sys.executable, "-c", KERNEL],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert answer.stdout.strip() == "agrees", answer.stderr


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu():
    lengths = [3, 0, 5000, 1024, 1]
    segments = Segments.from_lengths(lengths, device="cuda")
    decay, increments = draw(sum(lengths), 0).sigmoid().cuda(), draw(sum(lengths), 1).cuda()
    found = segments.reverse_scan(decay, increments)
    expected = loop(decay.tolist(), increments.tolist(), lengths, backwards=True)
    torch.testing.assert_close(found.cpu(), torch.tensor(expected, dtype=torch.float64), atol=1e-10, rtol=1e-10)
