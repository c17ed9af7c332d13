from __future__ import annotations

import pytest
from pydantic import ValidationError

from windage.runtime.config import RunConfig
from windage.runtime.recipe import dump_config, validate
from windage.runtime.recipe_yaml import parse_yaml

MODEL = {"name": "qwen3_random"}


def settings(**changes):
    return {"name": "run", "steps": 20, "model": MODEL, **changes}


def test_resolved_settings_read_back_as_the_same_run():
    config = RunConfig.model_validate(settings(algorithm={"name": "copc", "clip": [0.5, 2.0]}, steps=21))
    again = validate(parse_yaml(dump_config(config), source="dump"), source="dump")
    assert again == config
    assert again.algorithm.settings["clip"] == (0.5, 2.0)
    assert again.algorithm.settings["band"] == (0.5, 2.0)  # a default of copc


@pytest.mark.parametrize(
    ("mode", "bound", "ahead", "barrier", "deterministic"),
    [
        ({"name": "sync"}, 0, 16, True, True),
        ({"name": "sync", "deterministic": False}, 0, 16, True, False),
        ({"name": "lagged", "k": 3}, 3, 64, True, True),
        ({"name": "async", "staleness": 2, "window": 1}, 2, 48, False, False),
        ({"name": "async", "staleness": 2}, 3, 48, False, False),
        ({"name": "async", "staleness": 0}, 0, 16, True, True),
    ],
)
def test_mode_becomes_pacing(mode, bound, ahead, barrier, deterministic):
    config = RunConfig.model_validate(settings(mode=mode, groups_per_step=16))
    assert config.pacing.bound.bound == bound
    assert config.pacing.ahead == ahead
    assert config.pacing.barrier is barrier
    assert config.deterministic is deterministic


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"queue": {"min_group": 9}, "rollout": {"group_size": 8}}, "min_group can never be reached"),
        ({"evaluation": {"tasks": 0, "every": 5}}, "no held-out tasks"),
        ({"warm_start": {"demonstrations": 7}}, "warm_start.demonstrations"),
        ({"learner": {"warm_start": {"lr": 0.1}}}, "learner.warm_start"),
        ({"mode": {"name": "sync", "deterministic": True}, "learner": {"deterministic": False}}, "deterministic"),
        ({"mode": {"name": "async", "staleness": 1, "deterministic": True}}, "mode=lagged mode.k=1"),
        ({"mode": {"name": "async", "staleness": 0, "in_flight": True}}, "staleness >= 1"),
        ({"mode": {"name": "lagged", "k": 65}}, "64"),
        ({"algorithm": {"name": "cpoc"}}, "did you mean 'copc'"),
        ({"algorithm": {"name": "copc", "clp": 1}}, "did you mean 'clip'"),
        ({"algorithm": {"name": "grpo"}, "learner": {"critic": {"lr": 1.0}}}, "learner.critic is unused"),
        ({"algorithm": {"name": "grpo"}, "rollout": {"group_size": 1}}, "compares trajectories of one task"),
        ({"algorithm": {"name": "ppo", "anchor": "entry"}}, "would not see staleness"),
        ({"rollout": {"top_p": 0.9}}, "truncated sampling"),
        ({"steps": 10}, "the policy would never train"),
        ({"rollout": {"max_context": 4097}}, "model.max_positions=4096"),
        ({"engine": {"max_context": 512}}, "engine.max_context=512"),
        ({"environment": {"format": "fenced"}}, "expected environment.format=plain"),
        ({"engine": {"model": "x"}}, "section `model`"),
        ({"engine": {"policy_version": 3}}, "decided by the run"),
        ({"name": "../up"}, "name"),
        ({"steps": 0}, "steps"),
    ],
)
def test_impossible_combinations_say_why(changes, reason):
    with pytest.raises(ValidationError) as caught:
        RunConfig.model_validate(settings(**changes))
    assert reason in str(caught.value)


def test_ppo_may_anchor_at_the_entry_policy_when_there_is_no_lag():
    made = RunConfig.model_validate(settings(mode={"name": "sync"}, algorithm={"name": "ppo", "anchor": "entry"}))
    assert made.algorithm.settings["anchor"] == "entry"


def test_an_infinite_interval_survives_the_file():
    config = RunConfig.model_validate(settings(algorithm={"name": "copc", "band": [0.0, float("inf")]}))
    again = validate(parse_yaml(dump_config(config), source="dump"), source="dump")
    assert again.algorithm.settings["band"] == (0.0, float("inf"))


def test_engine_settings_become_one_engine_of_the_runs_model():
    config = RunConfig.model_validate(settings(engine={"count": 3, "max_batch": 7}))
    engine = config.engine.for_model("folder", threads=2)
    assert (engine.model, engine.max_batch, engine.threads) == ("folder", 7, 2)
    assert type(engine).__name__ == "EngineConfig"


def test_settings_are_frozen():
    config = RunConfig.model_validate(settings())
    with pytest.raises(ValidationError):
        config.steps = 3
