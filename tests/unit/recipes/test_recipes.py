"""Every packaged recipe: valid, explained, and saying only what it means to change."""

from __future__ import annotations

import pytest

from windage.runtime.explain_config import explain_config
from windage.runtime.recipe import list_recipes, load_recipe, validate
from windage.runtime.recipe_yaml import parse_yaml, read_yaml

NAMES = [recipe.name for recipe in list_recipes()]


def test_the_promised_recipes_are_there():
    assert {"quickstart", "smollm2_tool_math", "qwen3_4b_tool_math"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_valid_and_its_dry_run_is_a_recipe(name):
    config = load_recipe(name)
    assert config.name == name
    assert validate(parse_yaml(explain_config(config), source=name), source=name) == config


@pytest.mark.parametrize("recipe", list_recipes(), ids=NAMES)
def test_a_recipe_has_one_line_for_the_list_and_fits_on_a_page(recipe):
    assert 20 < len(recipe.description) <= 110
    lines = recipe.path.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert len(lines) <= 90
    assert max(map(len, lines)) <= 120
    assert "extends" not in read_yaml(recipe.path)


def test_the_quickstart_is_stale_and_small():
    config = load_recipe("quickstart")
    assert (config.mode.name, config.algorithm.name, config.environment.name) == ("async", "copc", "tool_math")
    assert config.mode.staleness >= 2
    assert config.pacing.bound.bound >= 2
    assert config.warm_start.steps > 0


def test_the_large_recipe_has_the_published_settings():
    config = load_recipe("qwen3_4b_tool_math")
    assert config.learner.lr == 1e-6
    assert (config.learner.critic.lr, config.learner.critic.updates, config.learner.critic.warmup) == (5e-6, 2, 10)
    assert config.algorithm.settings["band"] == (0.7, 6.0)
    assert config.algorithm.settings["lam_actor"] == {"alpha": 1.5}
    assert (config.groups_per_step, config.rollout.group_size) == (16, 8)
