"""Append-only JSON lines that survive kill -9: a torn last line is dropped, and a redo never duplicates a line."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from windage.errors import DataError, explain
from windage.runtime.disk import disk_errors, write_atomically

__all__ = ["append_line", "keep_lines", "read_lines", "to_json"]


def append_line(path: Path, record: Mapping[str, Any]) -> None:
    """Append one record and flush it to the operating system.

    Raises:
        DataError: no space left, or no permission.
    """
    with disk_errors(path), path.open("a", encoding="utf-8") as handle:
        handle.write(to_json(record) + "\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Every complete record; a missing file has none, and a torn last line (no newline) is left out.

    Raises:
        DataError: a complete line is not a JSON object.
    """
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
    return [_parse(path, number, line) for number, line in enumerate(lines, start=1) if line.strip()]


def keep_lines(path: Path, keep: Callable[[dict[str, Any]], bool]) -> None:
    """Rewrite the file with the complete records that ``keep`` accepts; a missing file stays missing."""
    if path.exists():
        kept = [record for record in read_lines(path) if keep(record)]
        write_atomically(path, "".join(to_json(record) + "\n" for record in kept))


def to_json(value: Any, *, indent: int | None = None) -> str:
    """JSON that every parser reads: NaN and infinities become null.

    >>> to_json({"loss": float("nan"), "step": 3})
    '{"loss": null, "step": 3}'
    """
    return json.dumps(_finite(value), ensure_ascii=False, indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, bool | str | int) or value is None:
        return value
    number = float(value)
    return number if math.isfinite(number) else None


def _parse(path: Path, number: int, line: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise DataError(explain(f"{path}: line {number} is not JSON", got=line[:80])) from error
    if not isinstance(record, dict):
        raise DataError(explain(f"{path}: line {number} is not an object", got=line[:80]))
    return record
