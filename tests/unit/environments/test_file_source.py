"""Questions from files: epochs, split, and errors that name file, line and columns."""

from __future__ import annotations

import itertools
import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from windage.environments.tool_math.config import FileSource, ToolMathConfig
from windage.environments.tool_math.file_source import read_questions
from windage.environments.tool_math.tasks import ToolMathTasks
from windage.errors import DataError

ROWS = [{"question": f"How many is {n}?", "answer": n} for n in range(40)]


def json_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def tasks_of(path, **settings):
    return ToolMathTasks(
        ToolMathConfig(format="fenced", sources=(FileSource(path=path, **settings),)), seed=1, group_size=1
    )


def test_each_epoch_is_a_new_order_of_every_training_row(tmp_path):
    tasks = tasks_of(json_lines(tmp_path / "q.jsonl", ROWS), held_out_share=0.25)
    size = len(tasks)
    stream = tasks.train()
    one, two = (list(itertools.islice(stream, size)) for _ in range(2))
    questions = [[task.data["question"] for task in epoch] for epoch in (one, two)]
    assert sorted(questions[0]) == sorted(questions[1])
    assert questions[0] != questions[1]
    assert len({task.task_id for task in (*one, *two)}) == 2 * size
    assert next(tasks.train(start=size)) == two[0]
    held_out = tasks.held_out(40 - size)
    assert not {task.data["question"] for task in held_out} & set(questions[0])


def test_a_held_out_file_is_taken_out_of_training(tmp_path):
    path = json_lines(tmp_path / "q.jsonl", ROWS)
    tasks = tasks_of(path, held_out_path=json_lines(tmp_path / "h.jsonl", ROWS[:5]))
    assert len(tasks) == 35
    assert [task.data["answer"] for task in tasks.held_out(5)] == ["0", "1", "2", "3", "4"]
    with pytest.raises(DataError, match="too few held-out"):
        tasks.held_out(6)


def test_parquet_equals_json_lines(tmp_path):
    table = pa.table({"question": [r["question"] for r in ROWS], "answer": [r["answer"] for r in ROWS]})
    parquet.write_table(table, tmp_path / "q.parquet")
    path = json_lines(tmp_path / "q.jsonl", ROWS)
    assert list(read_questions(tmp_path / "q.parquet")) == list(read_questions(path))


def test_the_answer_after_a_mark_counts(tmp_path):
    path = json_lines(tmp_path / "q.jsonl", [{"question": "q", "answer": "2 + 2 is four\n#### 4"}])
    assert list(read_questions(path)) == [(1, "q", "4")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"question": "a", "answer": 1}\n{"question": "b"}\n', r"q\.jsonl, row 2.*columns \['question'\]"),
        (b'{"question": "a", "answer": 1}\n\nnot json\n', r"q\.jsonl, line 3 is not JSON"),
        (b"[1]\n", "line 1: not an object"),
        (b'{"question": " ", "answer": 1}\n', "row 1"),
        (b'{"question": "a", "answer": true}\n', "row 1"),
        (b"\xff\xfe\n", "UTF-8"),
        (b"", "no training questions"),
    ],
)
def test_a_malformed_file_names_the_place(tmp_path, content, message):
    path = tmp_path / "q.jsonl"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        tasks_of(path)


def test_missing_unknown_and_broken_files(tmp_path):
    with pytest.raises(DataError, match="no such data file"):
        tasks_of(tmp_path / "none.jsonl")
    (tmp_path / "q.csv").write_text("question,answer\n")
    with pytest.raises(DataError, match="unknown kind of file"):
        tasks_of(tmp_path / "q.csv")
    (tmp_path / "q.parquet").write_text("no parquet")
    with pytest.raises(DataError, match=r"cannot read .*q\.parquet"):
        tasks_of(tmp_path / "q.parquet")
    parquet.write_table(pa.table({"prompt": ["a"]}), tmp_path / "p.parquet")
    with pytest.raises(DataError, match=r"lacks columns; got \['prompt'\]"):
        tasks_of(tmp_path / "p.parquet")
