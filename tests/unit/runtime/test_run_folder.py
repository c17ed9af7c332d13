from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from windage.errors import DataError
from windage.runtime.json_lines import append_line, read_lines, to_json
from windage.runtime.run_folder import RunFolder, default_run_dir

FULL = Path("/dev/full")


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(tmp_path / "run", config="name: x\n")


def test_a_new_run_can_be_opened_again(folder):
    assert RunFolder.open(folder.path).config.read_text() == "name: x\n"
    assert folder.logs.is_dir()
    assert folder.checkpoints.is_dir()


def test_a_second_run_in_the_same_folder_is_refused(folder):
    with pytest.raises(DataError, match="windage resume"):
        RunFolder.create(folder.path, config="")
    assert folder.config.read_text() == "name: x\n"


def test_foreign_folders_and_files_are_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(DataError, match=r"thesis\.tex"):
        RunFolder.create(tmp_path, config="")
    with pytest.raises(DataError, match="is a file"):
        RunFolder.create(tmp_path / "thesis.tex", config="")
    with pytest.raises(DataError, match="no run here"):
        RunFolder.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_one_trainer_at_a_time(folder):
    other = RunFolder.open(folder.path)
    with folder.locked(), pytest.raises(DataError, match="in use by another trainer"), other.locked():
        pass
    with folder.locked():
        pass


def test_the_lock_names_its_holder(folder):
    with folder.locked(), pytest.raises(DataError, match=f"process {os.getpid()}"), folder.locked():
        pass


def test_rewind_forgets_what_will_be_made_again(folder):
    for step in range(5):
        folder.append_metrics(step, {"batch/reward": float(step)})
        folder.append_evaluation(step, {"eval/success": 0.5})
    with folder.metrics.open("a") as handle:
        handle.write('{"step": 5, "ba')  # killed in the middle of a line
    folder.rewind(3)
    folder.append_metrics(3, {"batch/reward": 30.0})
    assert [line["step"] for line in folder.read_metrics()] == [0, 1, 2, 3]
    assert folder.read_metrics()[-1]["batch/reward"] == 30.0
    assert [line["step"] for line in folder.read_evaluations()] == [0, 1, 2, 3]


def test_a_torn_line_is_ignored_but_a_broken_one_is_not(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"a": 1}\n{"a": 2')
    assert read_lines(path) == [{"a": 1}]
    path.write_text('{"a": 1}\n{"a": \n{"a": 3}\n')
    with pytest.raises(DataError, match="line 2"):
        read_lines(path)
    assert read_lines(tmp_path / "none.jsonl") == []


def test_json_has_no_nan():
    text = to_json({"a": float("nan"), "b": [float("inf"), 1], "c": {"d": -float("inf")}, "e": True})
    assert json.loads(text, parse_constant=pytest.fail) == {"a": None, "b": [None, 1], "c": {"d": None}, "e": True}


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_disk_is_one_clear_error():
    with pytest.raises(DataError, match=r"disk full .* windage resume"):
        append_line(FULL, {"a": 1})


def test_a_folder_that_may_not_be_written(tmp_path, monkeypatch):
    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(DataError, match=r"cannot write .*Permission denied"):
        RunFolder.create(tmp_path / "run", config="")


def test_a_default_folder_is_never_an_old_one(tmp_path):
    first = default_run_dir("quick", root=tmp_path)
    for _ in range(3):
        path = default_run_dir("quick", root=tmp_path)
        assert not path.exists()
        path.mkdir()
    assert first.name.startswith("quick-")


def test_replacing_a_file_is_atomic(tmp_path, monkeypatch):
    from windage.runtime.disk import write_atomically

    path = tmp_path / "summary.json"
    path.write_text("old")

    def fill_up(self, text, **kwargs):
        with self.open("w") as handle:
            handle.write(text[:1])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", fill_up)
    with pytest.raises(DataError, match="disk full"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
