"""Weights as files: the policy's plain state dict to safetensors, its fingerprint, and a check of every number."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from windage.errors import LearnerError, explain
from windage.learner.lora import merged

__all__ = ["fingerprint", "plain_weights", "refuse_non_finite", "save_tensors", "saved"]


def plain_weights(hf: Any, dtype: torch.dtype) -> dict[str, Tensor]:
    """The weights under their Hugging Face names, adapters merged, each tied weight once, on the CPU in ``dtype``."""
    seen: set[tuple[int, tuple[int, ...]]] = set()
    plain: dict[str, Tensor] = {}
    for name, tensor in merged(hf):
        key = (tensor.data_ptr(), tuple(tensor.shape))
        if tensor.numel() and key in seen:
            continue
        seen.add(key)
        kept = tensor.detach()
        plain[name] = (kept.to(dtype) if kept.is_floating_point() else kept).cpu().contiguous()
    return plain


def refuse_non_finite(tensors: Mapping[str, Tensor], what: str, error: type[LearnerError] | Any = LearnerError) -> None:
    """Weights that are not numbers are never saved or published (trap 22).

    Raises:
        LearnerError: (or ``error``) naming the first bad tensor.
    """
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise error(explain(f"{what} refused: {name} is not finite", do="resume from the last good checkpoint"))


def fingerprint(tensors: Mapping[str, Tensor]) -> str:
    """Hash of every name and every bit, in the order of names."""
    digest = hashlib.sha1(usedforsecurity=False)
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def save_tensors(tensors: Mapping[str, Tensor], file: Path) -> None:
    """Write a safetensors file.

    Raises:
        OSError: the disk is full or refuses.
    """
    saved(lambda: save_file(dict(tensors), file, metadata={"format": "pt"}))


def saved(write: Callable[[], object]) -> None:
    """Run ``write``; what torch and safetensors raise on a full disk becomes the OSError it is.

    Raises:
        OSError: as above.
    """
    try:
        write()
    except (SafetensorError, RuntimeError) as error:
        raise OSError(str(error).splitlines()[0]) from error
