"""PackedLinear: a large matrix kept in the layout that oneDNN's kernels want, for the few rows of a decoding step."""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

__all__ = ["PackedLinear", "packing_works"]

# Measured on one AVX-512 core: below this size the call's overhead eats the gain; above these rows the plain product
# is as good and every new row count would cost a new kernel.
_SMALLEST = 250_000
_MOST_ROWS = 128


class PackedLinear:
    """``y = x · Wᵀ + b``. With ``pack``, a matrix of at least 250,000 numbers is kept a second time, repacked.

    1.2–2.3 times faster than the plain product at 2–32 rows; the packed copy takes the matrix' memory once more.
    Build it anew when the weights have changed.
    """

    __slots__ = ("_bias", "_packed", "_weight")

    def __init__(self, weight: Tensor, bias: Tensor | None, *, pack: bool) -> None:
        self._weight = weight
        self._bias = bias
        worth = weight.numel() >= _SMALLEST and weight.dtype == torch.float32 and weight.device.type == "cpu"
        self._packed = _pack(weight) if pack and worth and packing_works() else None

    def __call__(self, rows: Tensor) -> Tensor:
        """[rows, inputs] to [rows, outputs]."""
        if self._packed is None or len(rows) > _MOST_ROWS:
            return F.linear(rows, self._weight, self._bias)
        return _apply(rows, self._packed, self._bias)


@cache
def packing_works() -> bool:
    """Whether this torch has oneDNN's packed product, and it computes the product (it is not a public function)."""
    if not torch.backends.mkldnn.is_available():
        return False
    weight, bias, rows = torch.arange(12.0).view(4, 3), torch.arange(4.0), torch.arange(6.0).view(2, 3)
    try:
        return torch.equal(_apply(rows, _pack(weight), bias), F.linear(rows, weight, bias))
    except (AttributeError, RuntimeError, TypeError):
        return False


def _pack(weight: Tensor) -> Any:
    return torch.ops.mkldnn._reorder_linear_weight(weight, 32)  # noqa: SLF001 (the operator's name)


def _apply(rows: Tensor, packed: Any, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(rows, packed, bias, "none", [], None)  # noqa: SLF001
