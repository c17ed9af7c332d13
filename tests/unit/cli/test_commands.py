from __future__ import annotations

import json
import sys
import types
from pathlib import Path

import pytest
from typer.testing import CliRunner

from windage.cli import border
from windage.cli.main import app
from windage.errors import StalenessError
from windage.runtime.recipe import load_resolved

RECIPE = "steps: 20\nmodel: {name: qwen3_random}\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty folder to work in, with a recipe beside it."""
    monkeypatch.setattr(border, "_run", None)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (tmp_path / "mine.yaml").write_text(RECIPE)
    return work


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def fake(monkeypatch):
    """Stand-ins for the trainer and what else starts processes; they record how they were called."""
    calls = []

    def module(name, **functions):
        made = types.ModuleType(f"windage.runtime.{name}")
        for key, function in functions.items():
            setattr(made, key, function)
        monkeypatch.setitem(sys.modules, made.__name__, made)
        import windage.runtime

        monkeypatch.setattr(windage.runtime, name, made, raising=False)

    async def train(config, run_dir, *, progress):
        calls.append(("train", config.steps, run_dir))
        with progress:
            progress.update({"step": 0, "batch/reward": 0.5})

    async def resume(run_dir, *, progress):
        calls.append(("resume", run_dir))
        raise StalenessError("versions run backwards")

    async def evaluate_config(config, *, run_dir):
        calls.append(("eval", config.evaluation.tasks, run_dir))
        return {"eval/success": 0.5, "nan": float("nan")}

    async def diagnose(config):
        return "measured: fine"

    module("trainer", train=train, resume=resume)
    module("evaluation", evaluate_config=evaluate_config)
    module("doctor", diagnose=diagnose)
    return calls


def test_train_makes_a_folder_of_its_own(place, fake):
    answer = call("train", "../mine.yaml", "steps=30", "--run-dir", "out")
    assert answer.exit_code == 0, answer.output
    assert fake == [("train", 30, Path("out"))]
    assert "run folder: out" in answer.output
    assert "reward 0.500" in answer.output


def test_train_without_a_folder_takes_a_dated_one(place, fake):
    call("train", "../mine.yaml", "--quiet")
    assert fake[0][2].parent == Path("runs")
    assert fake[0][2].name.startswith("mine-2")


def test_quiet_prints_the_folder_only(place, fake):
    answer = call("train", "../mine.yaml", "--run-dir", "out", "-q")
    assert answer.output == "run folder: out\n"


def test_a_dry_run_touches_nothing_and_its_output_is_a_recipe(place, fake, tmp_path):
    answer = call("train", "../mine.yaml", "mode.staleness=3", "--dry-run")
    assert answer.exit_code == 0, answer.output
    assert fake == []
    assert list(place.iterdir()) == []
    (tmp_path / "again.yaml").write_text(answer.stdout)
    assert load_resolved(tmp_path / "again.yaml").mode.staleness == 3
    assert "staleness <= 4 versions" in answer.output


def test_wrong_settings_exit_2_and_touch_nothing(place, fake):
    answer = call("train", "../mine.yaml", "stepps=3", "--run-dir", "out")
    assert answer.exit_code == 2
    assert "did you mean 'steps'?" in answer.stderr
    assert not Path("out").exists()
    assert fake == []


def test_resume_needs_a_run_and_reports_its_error(place, fake):
    answer = call("resume", "nowhere")
    assert (answer.exit_code, fake) == (1, [])
    assert "no run here" in answer.stderr
    Path("run").mkdir()
    Path("run/config.yaml").write_text("name: x\n" + RECIPE)
    answer = call("resume", "run")
    assert answer.exit_code == 1
    assert "error: versions run backwards\n" in answer.stderr


def test_eval_of_a_recipe_and_of_a_run(place, fake):
    answer = call("eval", "../mine.yaml", "evaluation.tasks=7")
    assert json.loads(answer.stdout) == {"eval/success": 0.5, "nan": None}
    Path("run").mkdir()
    Path("run/config.yaml").write_text("name: x\n" + RECIPE)
    call("eval", "run", "evaluation.tasks=9")
    assert fake == [("eval", 7, None), ("eval", 9, Path("run"))]


def test_doctor_prints_settings_and_measurements(place, fake):
    answer = call("doctor", "../mine.yaml")
    assert "staleness <=" in answer.output
    assert answer.output.endswith("measured: fine\n")


def test_recipes_are_listed_and_shown(place):
    listed = call("recipes")
    assert listed.exit_code == 0
    assert "quickstart" in listed.output
    shown = call("recipes", "show", "quickstart")
    assert shown.stdout.startswith("#")
    resolved = call("recipes", "show", "quickstart", "steps=70", "--resolved")
    assert "steps: 70\n" in resolved.stdout
    assert call("recipes", "show", "quikstart").exit_code == 2


def test_report_is_built_again(place):
    Path("run").mkdir()
    Path("run/config.yaml").write_text("name: x\n" + RECIPE)
    answer = call("report", "run", "--picture", "run.svg")
    assert answer.exit_code == 0, answer.output
    assert Path("run/report.html").is_file()
    assert Path("run.svg").is_file()
    assert call("report", "nowhere").exit_code == 1


def test_version():
    assert call("--version").output.startswith("windage ")


def test_unknown_options_exit_2(place):
    assert call("train", "quickstart", "--fast").exit_code == 2
    assert call("trian").exit_code == 2
