"""Checkpoints: complete or ignored, exact, never of broken weights (traps 20-22)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from windage.errors import DataError, explain
from windage.learner.state import LearnerState
from windage.learner.weights import refuse_non_finite, save_tensors, saved
from windage.publish.folder import read_marker, writing

__all__ = ["load_checkpoint", "save_checkpoint"]

_FORMAT = 1


def save_checkpoint(state: LearnerState, target: Path) -> None:
    """Write weights, optimizers, counters and RNG to ``target``, all or nothing.

    Raises:
        LearnerError: a weight is not finite; nothing was written.
        DataError: the disk is full or refuses; what was at ``target`` is still there.
    """
    weights = {name: _tensors(module.state_dict()) for name, module in state.modules.items()}
    for name, tensors in weights.items():
        refuse_non_finite(tensors, f"checkpoint of the {name}")
    with writing(target, "the checkpoint") as draft:
        for name, tensors in weights.items():
            save_tensors(tensors, draft.folder / f"{name}.safetensors")
        rest = {
            "optimizers": {name: optimizer.state() for name, optimizer in state.optimizers.items()},
            "rng": _rng(),
        }
        saved(lambda: torch.save(rest, draft.folder / "state.pt"))
        draft.marker.update(format=_FORMAT, version=state.version, step=state.step, critic_batches=state.critic_batches)


def load_checkpoint(state: LearnerState, source: Path) -> None:
    """Put ``state`` exactly where it was when ``source`` was written.

    Raises:
        DataError: incomplete, unreadable, or of another model; ``state`` may then be half restored.
    """
    marker = read_marker(source)
    if marker.get("format") != _FORMAT:
        raise DataError(explain(f"{source} has another format", got=marker.get("format"), expected=_FORMAT))
    try:
        for name, module in state.modules.items():
            _restore(module, load_file(source / f"{name}.safetensors"))
        rest = torch.load(source / "state.pt", map_location="cpu", weights_only=True)
        for name, optimizer in state.optimizers.items():
            optimizer.restore(rest["optimizers"][name])
        _set_rng(rest["rng"])
    except (OSError, RuntimeError, KeyError, ValueError, SafetensorError) as error:
        raise DataError(
            explain(f"cannot restore {source}", got=str(error), do="use a checkpoint of the same model and settings")
        ) from error
    state.version, state.step = int(marker["version"]), int(marker["step"])
    state.critic_batches = int(marker["critic_batches"])


def _tensors(named: dict[str, Tensor]) -> dict[str, Tensor]:
    """State dict without the second names of tied weights, each tensor contiguous on the CPU."""
    seen: dict[int, str] = {}
    kept: dict[str, Tensor] = {}
    for name, tensor in named.items():
        if seen.setdefault(tensor.data_ptr(), name) == name or not tensor.numel():
            kept[name] = tensor.detach().cpu().contiguous()
    return kept


def _restore(module: torch.nn.Module, tensors: dict[str, Tensor]) -> None:
    own = module.state_dict()
    wanted = set(_tensors(own))
    if set(tensors) != wanted:
        raise ValueError(f"names differ: {sorted(set(tensors) ^ wanted)[:4]}")
    with torch.no_grad():
        for name, tensor in tensors.items():
            if tensor.shape != own[name].shape:
                raise ValueError(f"shape of {name} is {tuple(tensor.shape)}, not {tuple(own[name].shape)}")
            own[name].copy_(tensor)


def _rng() -> dict[str, Any]:
    name, keys, position, has_gauss, cached = np.random.get_state(legacy=True)  # noqa: NPY002
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "numpy": [
            str(name),
            torch.tensor(np.asarray(keys).astype(np.int64)),
            int(position),
            int(has_gauss),
            float(cached),
        ],
        "python": list(random.getstate()[1]),
    }


def _set_rng(state: dict[str, Any]) -> None:
    torch.set_rng_state(state["torch"])
    if state["cuda"] and torch.cuda.is_available():
        torch.cuda.set_rng_state_all(state["cuda"])
    name, keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state((name, keys.numpy().astype(np.uint32), position, has_gauss, cached))  # noqa: NPY002
    random.setstate((3, tuple(state["python"]), None))
