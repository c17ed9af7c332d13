"""Committed folders: written beside their place, synced, marked last, renamed. A reader sees all of one or none.

Used for published versions and for checkpoints. No torch here.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windage.errors import DataError, WindageError, explain

__all__ = ["MARKER", "Draft", "committed", "drop_old_versions", "read_marker", "version_folder", "writing"]

MARKER = "COMMITTED"
_VERSION = "version-"


@dataclass(slots=True)
class Draft:
    """A folder being written: put files into ``folder``, and what the marker shall say into ``marker``."""

    folder: Path
    marker: dict[str, Any] = field(default_factory=dict)


@contextmanager
def writing(target: Path, what: str, *, error: type[WindageError] = DataError) -> Generator[Draft]:
    """Write a folder that becomes ``target`` when the block ends, complete, or not at all.

    Raises:
        DataError: (or ``error``) the disk is full or refuses; nothing of the draft is left, and an older ``target`` is
            untouched.
    """
    draft = Draft(target.parent / f".{target.name}.partial-{os.getpid()}")
    done = False
    try:
        shutil.rmtree(draft.folder, ignore_errors=True)
        draft.folder.mkdir(parents=True)
        yield draft
        _commit(draft, target)
        done = True
    except OSError as cause:
        raise error(
            explain(
                f"cannot write {what} to {target}",
                got=cause.strerror or str(cause),
                do="free space there or choose another place; what was committed before is untouched",
            )
        ) from cause
    finally:
        if not done:
            shutil.rmtree(draft.folder, ignore_errors=True)


def committed(folder: Path) -> bool:
    """True when the folder was written to its end.

    >>> committed(Path("nowhere"))
    False
    """
    return (folder / MARKER).exists()


def read_marker(folder: Path) -> Mapping[str, Any]:
    """What the writer said last.

    Raises:
        DataError: the folder is missing or was not written to its end.
    """
    try:
        return json.loads((folder / MARKER).read_text())
    except (OSError, ValueError) as error:
        raise DataError(
            explain(f"{folder} is not a committed folder", got=str(error), do="use one that has the file COMMITTED")
        ) from error


def version_folder(root: Path, version: int) -> Path:
    """Where ``version`` is published below ``root``."""
    return root / f"{_VERSION}{version}"


def drop_old_versions(root: Path, *, keep: int) -> None:
    """Remove all but the ``keep`` newest versions, and drafts that a dead writer left."""
    found = {int(path.name.removeprefix(_VERSION)): path for path in root.glob(f"{_VERSION}[0-9]*") if path.is_dir()}
    for version in sorted(found, reverse=True)[keep:]:
        (found[version] / MARKER).unlink(missing_ok=True)
        shutil.rmtree(found[version], ignore_errors=True)
    for draft in root.glob(".*.partial-*"):
        shutil.rmtree(draft, ignore_errors=True)


def _commit(draft: Draft, target: Path) -> None:
    for file in sorted(draft.folder.rglob("*")):
        if file.is_file():
            _sync(file)
    marker = draft.folder / MARKER
    marker.write_text(json.dumps(draft.marker, indent=1, sort_keys=True))
    _sync(marker)
    _sync(draft.folder)
    old = target.parent / f".{target.name}.partial-old"
    if target.exists():
        shutil.rmtree(old, ignore_errors=True)
        target.rename(old)
    draft.folder.rename(target)
    _sync(target.parent)
    shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
