"""QuestionFile: problems from a JSONL or Parquet file with the columns ``question`` and ``answer``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random
from typing import Any

from windage.environments.tool_math.config import FileSource
from windage.environments.tool_math.problem import Problem, Split, split_of
from windage.errors import DataError, explain

__all__ = ["QuestionFile", "read_questions"]


class QuestionFile:
    """Every epoch in an order of its own, drawn from the seed. Questions held out never train."""

    def __init__(self, config: FileSource, *, label: str = "") -> None:
        self.label = label or f"file.{config.path.stem}"
        rows = list(read_questions(config.path))
        if config.held_out_path is None:
            self._held_out = [row for row in rows if split_of(row[1], held_out_share=config.held_out_share) != "train"]
        else:
            self._held_out = list(read_questions(config.held_out_path))
        hidden = {question for _, question, _ in self._held_out}
        self._train = [row for row in rows if row[1] not in hidden]
        if not self._train:
            raise DataError(explain(f"{config.path} leaves no training questions", got=f"{len(rows)} rows in all"))
        self._order: tuple[tuple[int, int], list[int]] | None = None

    @property
    def size(self) -> int | None:
        """Training rows."""
        return len(self._train)

    def problem(self, split: Split, index: int, *, seed: int) -> Problem | None:
        """See :class:`~windage.environments.tool_math.problem.ProblemSource`."""
        if split == "held_out":
            return _problem(self._held_out[index]) if index < len(self._held_out) else None
        epoch, place = divmod(index, len(self._train))
        return _problem(self._train[self._permutation(epoch, seed)[place]], epoch=epoch)

    def _permutation(self, epoch: int, seed: int) -> list[int]:
        if self._order is None or self._order[0] != (epoch, seed):
            order = list(range(len(self._train)))
            Random(f"{self.label}/{epoch}/{seed}").shuffle(order)  # noqa: S311 - an order, not a secret
            self._order = (epoch, seed), order
        return self._order[1]


def read_questions(path: Path) -> Iterator[tuple[int, str, str]]:
    """(row number from 1, question, answer) of a file; of ``reasoning #### answer`` only what follows the mark.

    Raises:
        DataError: the file is missing or unreadable, or a row lacks a column; names file, row and columns.
    """
    if not path.is_file():
        raise DataError(explain("no such data file", got=str(path), expected="a .jsonl or .parquet file"))
    readers = {".jsonl": _json_lines, ".json": _json_lines, ".parquet": _parquet}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise DataError(explain(f"{path}: unknown kind of file", got=path.suffix, expected=", ".join(readers)))
    for number, row in reader(path):
        question, answer = row.get("question"), row.get("answer")
        if not isinstance(question, str) or not question.strip() or isinstance(answer, bool | type(None) | dict | list):
            raise DataError(
                explain(
                    f"{path}, row {number}: a question or answer is missing or of the wrong kind",
                    got=f"columns {sorted(map(str, row))}",
                    expected="question: text, answer: text or number",
                )
            )
        yield number, question, str(answer).rpartition("####")[2].strip()


def _json_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.strip():
                    yield number, _object(line, path, number)
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            explain(f"cannot read {path}", got=str(error), expected="UTF-8 text, one object a line")
        ) from error


def _object(line: str, path: Path, number: int) -> Mapping[str, Any]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise DataError(explain(f"{path}, line {number} is not JSON", got=str(error))) from error
    if not isinstance(row, dict):
        raise DataError(explain(f"{path}, line {number}: not an object", got=type(row).__name__))
    return row


def _parquet(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise DataError(explain(f"cannot read {path}", got=str(error), expected="a Parquet file")) from error
    missing = {"question", "answer"} - set(table.column_names)
    if missing:
        raise DataError(explain(f"{path} lacks columns", got=table.column_names, expected="question, answer"))
    rows = table.select(["question", "answer"]).to_pylist()
    yield from enumerate(rows, start=1)


def _problem(row: tuple[int, str, str], *, epoch: int | None = None) -> Problem:
    number, question, answer = row
    key = f"row-{number}" if epoch is None else f"epoch-{epoch}/row-{number}"
    return Problem(key=key, question=question, answer=answer)
