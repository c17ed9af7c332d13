"""Writing to disk: atomic replacement, and one clear error when the disk is full or the folder is closed to us."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from windage.errors import DataError, explain

__all__ = ["disk_errors", "write_atomically"]

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def disk_errors(path: Path) -> Generator[None]:
    """Turn "disk full" and "may not write here" into a :class:`DataError`; other errors pass.

    Raises:
        DataError: no space left, or no permission.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise DataError(
                explain(f"disk full while writing {path}", do="free some space, then: windage resume")
            ) from error
        if error.errno in _REFUSED:
            raise DataError(
                explain(f"cannot write {path}", got=error.strerror, expected="a writable folder")
            ) from error
        raise


def write_atomically(path: Path, text: str) -> None:
    """Write the whole file or leave the old one: a reader never sees half of it.

    Raises:
        DataError: no space left, or no permission.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    with disk_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
