from __future__ import annotations

import pytest
from tests.models import tiny_model

from windage.learner.model_config import PathModel
from windage.runtime.config import RunConfig
from windage.runtime.explain_config import explain_config
from windage.runtime.memory_estimate import estimate_memory
from windage.runtime.model_shape import _parameters, shape_of
from windage.runtime.recipe import validate
from windage.runtime.recipe_yaml import parse_yaml


def config(**changes):
    return RunConfig.model_validate({"name": "x", "steps": 20, "model": {"name": "qwen3_random"}, **changes})


def notes(made):
    return [line[2:] for line in explain_config(made).splitlines() if line.startswith("# ")]


def test_the_text_is_a_recipe_again():
    made = config(mode={"name": "lagged", "k": 4})
    assert validate(parse_yaml(explain_config(made), source="x"), source="x") == made


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ({"name": "async", "staleness": 2}, "staleness <= 3 versions: 2 from staleness (S=2) + 1 from the window"),
        ({"name": "async", "staleness": 2, "window": 1}, "staleness <= 2 versions"),
        ({"name": "lagged", "k": 5}, "staleness <= 5 versions"),
        ({"name": "sync"}, "staleness <= 0 versions"),
        ({"name": "sync"}, "deterministic: yes"),
        ({"name": "sync", "deterministic": False}, "deterministic: no"),
        ({"name": "async", "staleness": 1}, "deterministic: no"),
    ],
)
def test_the_bound_and_the_knob_that_binds_are_said(mode, says):
    assert any(says in line for line in notes(config(mode=mode)))


@pytest.mark.parametrize("kind", ["llama", "qwen3", "qwen3_moe"])
def test_sizes_of_a_model_folder_are_read_without_loading_it(tmp_path, kind):
    import json

    folder = tiny_model(tmp_path / kind, kind)
    shape = shape_of(PathModel(path=str(folder)))
    from safetensors import safe_open

    with safe_open(folder / "model.safetensors", framework="np") as file:
        true = sum(file.get_tensor(name).size for name in file.keys())  # noqa: SIM118
    assert shape.parameters == true
    assert _parameters(json.loads((folder / "config.json").read_text())) == pytest.approx(true, rel=0.02)
    assert (shape.layers, shape.kv_heads, shape.head_dim) == (2, 2, 16)
    assert shape.kv_numbers_per_token == 2 * 2 * 2 * 16


def test_a_model_that_is_not_here_has_no_estimate():
    away = config(model={"name": "path", "path": "owner/name"})
    assert estimate_memory(away) is None
    assert any("not known" in line for line in notes(away))


def test_adapters_and_frozen_layers_take_less():
    full = estimate_memory(config())
    lora = estimate_memory(config(learner={"lora": {"rank": 4}}))
    frozen = estimate_memory(config(learner={"freeze_layers": 2}))
    checkpointed = estimate_memory(config(learner={"gradient_checkpointing": True}))
    assert full.learner_state == 16 * full.parameters
    assert 4 * full.parameters < lora.learner_state < full.learner_state / 2
    assert 4 * full.parameters < frozen.learner_state < full.learner_state
    assert checkpointed.learner_activations < full.learner_activations / 2


@pytest.mark.parametrize(
    ("path", "says"), [("./gone", "NOT FOUND"), ("owner/name", "from the hub"), (".", "the folder")]
)
def test_where_the_model_comes_from_is_said(path, says):
    assert any(says in line for line in notes(config(model={"name": "path", "path": path})))
