from __future__ import annotations

import os

import pytest

from windage.cli import border
from windage.cli.border import guarded, root_cause
from windage.errors import ConfigError, DataError, StalenessError


@pytest.fixture(autouse=True)
def _fresh(monkeypatch):
    monkeypatch.setattr(border, "_run", None)
    monkeypatch.delenv("WINDAGE_DEBUG", raising=False)


def leave(error, run=None) -> int:
    with pytest.raises(SystemExit) as caught, guarded(run):
        raise error
    return int(caught.value.code)


@pytest.mark.parametrize(
    ("error", "code"),
    [(ConfigError("bad"), 2), (DataError("bad"), 1), (StalenessError("bad"), 1), (KeyError("bad"), 1)],
)
def test_every_error_is_one_message_and_a_code(error, code, capsys):
    assert leave(error) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert "bad" in err
    assert "Traceback" not in err


def test_an_error_of_our_own_is_one_line(capsys):
    leave(DataError("no run here; got x"))
    assert capsys.readouterr().err == "error: no run here; got x\n"


def test_the_real_error_is_found_inside_groups(capsys):
    inner = ExceptionGroup("inner", [RuntimeError("collateral"), DataError("the cause")])
    assert leave(ExceptionGroup("stages", [ValueError("other"), inner])) == 1
    assert capsys.readouterr().err == "error: the cause\n"
    assert isinstance(root_cause(BaseExceptionGroup("g", [DataError("x"), KeyboardInterrupt()])), KeyboardInterrupt)


def test_unexpected_errors_leave_their_traceback_with_the_run(tmp_path, capsys):
    assert leave(ZeroDivisionError("oops"), tmp_path) == 1
    (log,) = (tmp_path / "logs").iterdir()
    assert "ZeroDivisionError: oops" in log.read_text()
    assert str(log) in capsys.readouterr().err


def test_ctrl_c_says_how_to_go_on(tmp_path, capsys):
    assert leave(KeyboardInterrupt(), tmp_path) == 130
    assert f"windage resume {tmp_path}" in capsys.readouterr().err


def test_ctrl_c_inside_a_task_group_is_ctrl_c(capsys):
    assert leave(BaseExceptionGroup("stages", [KeyboardInterrupt(), DataError("x")])) == 130


def test_debug_shows_the_traceback(monkeypatch, capsys):
    monkeypatch.setenv("WINDAGE_DEBUG", "1")
    leave(DataError("bad"))
    assert "Traceback" in capsys.readouterr().err


def test_a_crash_whose_log_cannot_be_written_is_printed(monkeypatch, tmp_path, capsys):
    (tmp_path / "logs").write_text("a file where the folder should be")
    leave(ZeroDivisionError("oops"), tmp_path)
    assert "ZeroDivisionError: oops" in capsys.readouterr().err


def test_nothing_is_touched_when_all_is_well():
    with guarded():
        done = os.getpid()
    assert done
