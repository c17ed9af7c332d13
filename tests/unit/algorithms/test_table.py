"""The table: names, settings, errors that help, and no torch until an algorithm is built."""

import subprocess
import sys

import pytest

from windage import algorithms
from windage.algorithms import check, get, lookup, names
from windage.errors import ConfigError


def test_names():
    assert names() == (
        "copc",
        "copc_no_recompute",
        "copc_no_mask",
        "ppo",
        "vtrace",
        "sao",
        "areal",
        "grpo",
        "dapo",
    )


@pytest.mark.parametrize("name", names())
def test_an_entry_says_what_the_algorithm_is(name):
    entry, algorithm = lookup(name), get(name)
    assert entry.name == algorithm.name == name
    assert entry.summary
    assert entry.needs == algorithm.needs
    assert entry.critic == algorithm.critic
    assert entry.defaults == dict(algorithm.settings)
    assert all(field.description for field in entry.settings.model_fields.values())


def test_published_defaults():
    assert get("copc").settings["clip"] == (0.8, 1.2)
    assert get("copc").settings["band"] == (0.5, 2.0)
    assert get("sao").settings["band"] == (0.7, 6.0)
    assert get("sao").settings["lam_actor"] == {"alpha": 1.5}
    assert get("ppo").settings["clip"] == (0.2, 0.2)
    assert get("dapo").settings["clip"] == (0.2, 0.28)
    assert get("areal").settings["weight_max"] == 5.0


def test_what_needs_the_entry_policy():
    assert {name for name in names() if get(name).recompute_entry} == {"copc", "copc_no_mask", "vtrace", "areal"}
    assert get("ppo", anchor="entry").recompute_entry


@pytest.mark.parametrize(
    ("name", "settings", "words"),
    [
        ("corpc", {}, ["corpc", "did you mean 'copc'", "dapo"]),
        ("COPC-no-mask", {}, ["did you mean 'copc_no_mask'"]),
        ("copc", {"cilp": (0.8, 1.2)}, ["cilp", "did you mean 'clip'"]),
        ("grpo", {"gamma": 1.0}, ["gamma", "clip"]),
        ("copc", {"clip": (1.1, 1.2)}, ["clip", "0 <= low <= 1 <= high"]),
        ("copc", {"clip": (0.8, float("nan"))}, ["clip"]),
        ("copc", {"band": (1.0, 2.0)}, ["band", "low < 1 < high"]),
        ("copc", {"gamma": 1.5}, ["gamma", "1.5"]),
        ("copc", {"trace": "sum"}, ["trace", "product"]),
        ("copc", {"lam_actor": {"alpha": 0}}, ["lam_actor", "greater than 0"]),
        ("ppo", {"clip": (0.2, 0.0)}, ["clip"]),
        ("ppo", {"dual_clip": 1.0}, ["dual_clip"]),
        ("ppo", {"anchor": "old"}, ["anchor", "behavior"]),
        ("grpo", {"reduce": "sum"}, ["reduce", "token_mean"]),
        ("grpo", {"baseline": "others", "scale": "std"}, ["leave-one-out"]),
        ("dapo", {"overlong": {"limit": 10}}, ["overlong"]),
    ],
)
def test_mistakes_are_explained(name, settings, words):
    with pytest.raises(ConfigError) as caught:
        get(name, **settings)
    assert all(word in str(caught.value) for word in words), caught.value
    with pytest.raises(ConfigError):
        check(name, settings)


def test_settings_reach_the_functions():
    algorithm = get("copc", clip=[0.9, 1.1], band=[0.2, 5], gamma=0.9, lam_actor=0.5, trace="residual", value_clip=0.5)
    assert algorithm.returns.keywords["clip"] == (0.9, 1.1)
    assert algorithm.returns.keywords["trace"] == "residual"
    assert algorithm.returns.keywords["lam_actor"] == 0.5
    assert algorithm.corrections.keywords["band"] == (0.2, 5.0)
    assert algorithm.trace == (0.9, 1.1)
    assert algorithm.value_clip == 0.5


def test_nothing_is_accepted_and_ignored():
    """Every setting of every algorithm changes something of what is built."""
    other = {
        "gamma": 0.5,
        "whiten": False,
        "value_clip": 0.5,
        "clip": (0.5, 1.5),
        "band": (0.3, 3.0),
        "lam_actor": 0.5,
        "lam_critic": 0.5,
        "trace": "residual",
        "actor_adv": "own",
        "dual_clip": 3.0,
        "anchor": "entry",
        "rho_max": 2.0,
        "c_max": 2.0,
        "pg_max": 2.0,
        "lam": 0.5,
        "weight_max": 2.0,
        "baseline": "others",
        "scale": "none",
        "reduce": "token_mean",
        "overlong": {"limit": 10, "buffer": 5},
    }

    def parts(algorithm):
        fields = ("returns", "corrections", "objective", "reduce", "anchor", "whiten", "value_clip")
        values = [getattr(algorithm, field) for field in fields]
        return [(getattr(v, "func", v), getattr(v, "keywords", None)) for v in values]

    for name in names():
        for setting in lookup(name).defaults:
            assert parts(get(name, **{setting: other[setting]})) != parts(get(name)), (name, setting)


@pytest.mark.process
def test_names_and_settings_need_no_torch():
    code = (
        "import sys, windage\n"
        "from windage import algorithms\n"
        "algorithms.check('copc', {'clip': [0.8, 1.2]}); algorithms.lookup('sao').defaults\n"
        "assert not {'torch', 'numba', 'transformers'} & set(sys.modules)\n"
        "windage.algorithms.get('copc'); windage.Segments.from_lengths([1])\n"
        "assert 'torch' in sys.modules\n"
        "print(' '.join(name for name in dir(windage) if not name.startswith('_')))\n"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert {"Segments", "TokenBatch", "algorithms", "returns", "reduce"} <= set(answer.stdout.split())


def test_windage_says_what_it_does_not_have():
    import windage

    with pytest.raises(AttributeError, match="no attribute 'manager'"):
        windage.manager  # noqa: B018
    assert algorithms is windage.algorithms
