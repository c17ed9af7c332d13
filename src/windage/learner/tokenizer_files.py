"""Tokenizer files travel with the weights, so that every published version is a whole model."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from windage.errors import DataError, explain

__all__ = ["copy_tokenizer", "tokenizer_size"]

_NAMES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "tokenizer.model",
    "chat_template.jinja",
    "generation_config.json",
)


def copy_tokenizer(source: Path, target: Path) -> None:
    """Link (or copy) what tokenizer files there are."""
    for name in _NAMES:
        if (source / name).exists() and not (target / name).exists():
            try:
                os.link((source / name).resolve(), target / name)
            except OSError:
                shutil.copyfile(source / name, target / name)


def tokenizer_size(folder: Path) -> int:
    """Number of ids: one more than the largest in ``tokenizer.json``.

    Raises:
        DataError: no readable tokenizer.
    """
    file = folder / "tokenizer.json"
    if not file.exists():
        raise DataError(explain("no tokenizer", got=str(folder), expected="a folder with tokenizer.json"))
    try:
        content = json.loads(file.read_text())
        vocab = content["model"]["vocab"]
        ids = list(vocab.values()) if isinstance(vocab, dict) else list(range(len(vocab)))
        ids += [token["id"] for token in content.get("added_tokens", ())]
        return max(ids) + 1
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(explain(f"cannot read {file}", got=repr(error))) from error
