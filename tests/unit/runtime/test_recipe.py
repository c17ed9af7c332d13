from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windage.errors import ConfigError
from windage.runtime.recipe import load_recipe, override, parse_override
from windage.runtime.recipe_yaml import dump_yaml, parse_yaml

BASE = "steps: 20\nmodel: {name: qwen3_random, hidden: 64}\n"


@pytest.fixture
def recipe(tmp_path):
    def write(text: str = BASE, name: str = "mine.yaml") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write


def failure(recipe: str, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_recipe(recipe, overrides)
    return str(caught.value)


def test_file_name_is_the_default_name(recipe):
    assert load_recipe(recipe()).name == "mine"
    assert load_recipe(recipe(BASE + "name: own\n")).name == "own"


def test_overrides_apply_in_order_and_keep_siblings(recipe):
    config = load_recipe(recipe(), ["learner.lr=1e-5", "steps=30", "steps=40", "model.layers=2", "mode=sync"])
    assert (config.learner.lr, config.steps) == (1e-5, 40)
    assert (config.model.hidden, config.model.layers) == (64, 2)
    assert config.mode.name == "sync"


def test_choosing_another_mode_drops_the_settings_of_the_old_one(recipe):
    config = load_recipe(recipe(BASE + "mode: {name: async, staleness: 4}\n"), ["mode=lagged", "mode.k=3"])
    assert config.mode.k == 3


def test_a_model_is_chosen_by_its_folder_or_its_kind(recipe):
    assert load_recipe(recipe(), ["model=some/folder"]).model.path == "some/folder"
    assert load_recipe(recipe(), ["model=path", "model.path=owner/name"]).model.path == "owner/name"
    assert load_recipe(recipe(), ["model=qwen3_random"]).model.hidden == 128


@pytest.mark.parametrize(
    ("override", "advice"),
    [
        ("stepps=3", "did you mean 'steps'?"),
        ("learner.lrr=1e-5", "did you mean 'learner.lr'?"),
        ("lr=1e-5", "'learner.lr'"),
        ("staleness=3", "'mode.staleness'"),
        ("mode=assync", "did you mean 'async'?"),
        ("mode.k=3", "unknown key 'mode.k'; mode of another kind has it: mode=lagged"),
        ("model.path=3", "model of another kind has it: model=path"),
        ("model.hiddn=3", "did you mean 'model.hidden'?"),
        ("algorithm=", "algorithm"),
        ("steps=3.5", "expected a whole number"),
        ("steps='3'", "expected a whole number"),
        ("learner.lr=fast", "expected a number"),
        ("tracking.wandb=yes", "expected true or false"),
        ("learner=3", "expected a block of settings"),
        ("steps.more=3", "expected steps to hold settings"),
        ("steps", "expected key=value"),
        ("engine.modle=x", "unknown key 'engine.modle'"),
    ],
)
def test_wrong_settings_name_the_key_and_the_nearest_valid_one(recipe, override, advice):
    text = failure(recipe(), override)
    assert advice in text
    assert "\n" not in text
    assert "pydantic" not in text


def test_keys_a_recipe_may_not_set_are_not_suggested(recipe):
    assert "'engine.model'" not in failure(recipe(), "engine.modle=x")


def test_every_wrong_setting_is_listed_and_the_command_line_is_blamed_for_its_own(recipe):
    text = failure(recipe(BASE + "sed: 1\n"), "learner.lr=fast")
    assert "2 settings are wrong" in text
    assert "did you mean 'seed'?" in text
    lines = text.splitlines()
    assert [line.endswith("(set on the command line)") for line in lines if line.startswith("  - ")].count(True) == 1
    assert "learner.lr" in next(line for line in lines if line.endswith("(set on the command line)"))


def test_missing_settings_are_named(recipe):
    assert "steps is not set" in failure(recipe("model: {name: qwen3_random}\n"))
    assert "model.name is not set" in failure(recipe("steps: 3\nmodel: {hidden: 3}\n"))


def test_unknown_recipes(tmp_path):
    assert "did you mean 'quickstart'?" in failure("quikstart")
    assert "no such recipe file" in failure(str(tmp_path / "gone.yaml"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("steps: [1\n", "not valid YAML"),
        ("steps: 1\nsteps: 2\n", "'steps' stands twice"),
        ("- 1\n", "holds no settings"),
        ("", "holds no settings"),
        ("steps: !!python/object/apply:os.getcwd []\n", "not valid YAML"),
    ],
)
def test_unreadable_files(recipe, text, reason):
    assert reason in failure(recipe(text))


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\x00")
    assert "not UTF-8" in failure(str(tmp_path / "bad.yaml"))


def test_extends_merges_blocks_and_replaces_another_kind(recipe):
    recipe(BASE + "mode: {name: lagged, k: 5}\nlearner: {lr: 1e-4, max_grad_norm: 2.0}\n", "base.yaml")
    config = load_recipe(recipe("extends: base.yaml\nmode: {name: async}\nlearner: {lr: 1e-5}\n", "child.yaml"))
    assert (config.learner.lr, config.learner.max_grad_norm, config.mode.name) == (1e-5, 2.0, "async")


def test_extends_is_one_level(recipe):
    recipe(BASE, "base.yaml")
    recipe("extends: base.yaml\n", "child.yaml")
    assert "one level" in failure(recipe("extends: child.yaml\n", "grandchild.yaml"))


def test_overriding_resolved_settings_changes_only_those(recipe):
    config = load_recipe(recipe())
    changed = override(config, ["evaluation.tasks=7"])
    assert changed.evaluation.tasks == 7
    assert changed.model_copy(update={"evaluation": config.evaluation}) == config


def test_override_values_are_yaml():
    assert parse_override("a.b=[1, 2.5]") == (("a", "b"), [1, 2.5])
    assert parse_override("a=null") == (("a",), None)
    assert parse_override("a=x=y") == (("a",), "x=y")


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abcdefgh_", min_size=1), inner),
    max_leaves=8,
)


@given(values)
def test_what_is_dumped_reads_back(value):
    again = parse_yaml(dump_yaml(value), source="dump")
    assert again == value
    assert repr(again) == repr(value)
