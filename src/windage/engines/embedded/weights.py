"""Weights of a serving model: read a folder completely and check it first, then swap in place between two steps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from windage.errors import EngineError, explain

__all__ = ["Staged", "fingerprint", "owned_weights", "read_marker", "stage", "swap"]

_HASHED_NUMBERS = 100_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """Checked weights beside the serving ones: one tensor for each of the model's, ready to be copied over."""

    version: int
    path: str
    tensors: Mapping[str, Tensor]
    fingerprint: str


def stage(model: Any, version: int, path: str) -> Staged:
    """Read every safetensors file in ``path``; refuse anything that would leave the model half-updated.

    Names are those of ``model.state_dict()``; where the folder's names differ (mixture-of-experts models are saved
    in another layout) the folder is loaded as a model of its own and its state dict taken.

    Raises:
        EngineError: no COMMITTED marker of this version, unreadable, missing or unexpected names, wrong shapes, or a
            number that is not finite.
    """
    _check_marker(Path(path), version)
    wanted = owned_weights(model)
    found = _read(Path(path))
    aliases = set(model.state_dict()) - set(wanted)
    if set(found) - aliases != set(wanted):
        found = _as_model(model, Path(path), set(found), set(wanted))
    tensors: dict[str, Tensor] = {}
    for name, own in wanted.items():
        tensor = found[name]
        if tensor.shape != own.shape:
            raise EngineError(
                explain(
                    f"weights of version {version}: shape of {name}",
                    got=tuple(tensor.shape),
                    expected=tuple(own.shape),
                    do=f"{path} belongs to another model",
                )
            )
        tensors[name] = tensor.to(dtype=own.dtype, device=own.device)
        if own.is_floating_point() and not bool(torch.isfinite(tensors[name]).all()):
            raise EngineError(
                explain(
                    f"weights of version {version}: {name} is not finite in {own.dtype}",
                    do="the current weights go on serving",
                )
            )
    return Staged(version=version, path=path, tensors=tensors, fingerprint=fingerprint(tensors.items()))


def swap(model: Any, staged: Staged) -> None:
    """Copy staged weights over the serving ones; :func:`stage` checked everything that could fail."""
    with torch.no_grad():
        for name, own in owned_weights(model).items():
            own.copy_(staged.tensors[name])


def fingerprint(tensors: Iterable[tuple[str, Tensor]]) -> str:
    """BLAKE2b over names and bytes of the weights, in the order of names.

    Above 10⁸ numbers every ``stride``-th number of each tensor is hashed, with ``stride = ceil(numbers / 10⁸)``.
    """
    ordered = sorted(tensors, key=lambda item: item[0])
    stride = max(1, -(-sum(tensor.numel() for _, tensor in ordered) // _HASHED_NUMBERS))
    digest = hashlib.blake2b(digest_size=16)
    for name, tensor in ordered:
        digest.update(name.encode())
        plain = tensor.detach().reshape(-1)[::stride].cpu().contiguous().view(torch.uint8)
        digest.update(plain.numpy().data)
    return digest.hexdigest()


def owned_weights(model: Any) -> dict[str, Tensor]:
    """The model's weights, each once: the second name of a tied weight is dropped."""
    own: dict[str, Tensor] = {}
    seen: set[tuple[int, tuple[int, ...]]] = set()
    for name, tensor in model.state_dict().items():
        key = (tensor.data_ptr(), tuple(tensor.shape))
        if key not in seen:
            seen.add(key)
            own[name] = tensor
    return own


def read_marker(folder: Path) -> int:
    """Version in the folder's COMMITTED file, which a publisher writes last.

    Raises:
        EngineError: no marker, so that the folder may be half-written, or one without a version.
    """
    marker = folder / "COMMITTED"
    try:
        return int(json.loads(marker.read_text())["version"])
    except FileNotFoundError as error:
        raise EngineError(
            explain("the weights are not committed", got=f"no {marker}", do="write COMMITTED after every other file")
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EngineError(explain(f"cannot read {marker}", got=repr(error), expected='{"version": n, …}')) from error


def _check_marker(folder: Path, version: int) -> None:
    if (found := read_marker(folder)) != version:
        raise EngineError(explain(f"{folder} holds another version", got=found, expected=version))


def _read(folder: Path) -> dict[str, Tensor]:
    files = sorted(folder.glob("*.safetensors")) if folder.is_dir() else []
    if not files:
        raise EngineError(explain("no weights to load", got=str(folder), expected="a folder with *.safetensors"))
    found: dict[str, Tensor] = {}
    for file in files:
        try:
            with safe_open(file, framework="pt") as opened:
                for name in opened.keys():  # noqa: SIM118 (not a mapping)
                    found[name] = opened.get_tensor(name)
        except (OSError, SafetensorError) as error:
            raise EngineError(
                explain(f"cannot read {file}", got=str(error), do="the current weights go on serving")
            ) from error
    return found


def _as_model(model: Any, folder: Path, found: set[str], wanted: set[str]) -> dict[str, Tensor]:
    if not (folder / "config.json").exists():
        raise EngineError(
            explain(
                f"weights in {folder} do not fit the model",
                got=f"unexpected {sorted(found - wanted)[:4]}, missing {sorted(wanted - found)[:4]}",
                do="write the model's state dict, or save_pretrained it so that config.json is there",
            )
        )
    try:
        other, info = type(model).from_pretrained(folder, dtype="auto", output_loading_info=True)
    except (OSError, ValueError, RuntimeError, KeyError, SafetensorError) as error:
        raise EngineError(explain(f"cannot load {folder}", got=str(error))) from error
    state = other.state_dict()
    missing = sorted(set(info["missing_keys"]) | (wanted - set(state)))
    if missing:
        raise EngineError(explain(f"weights in {folder} do not fit the model", got=f"missing {missing[:4]}"))
    return state
