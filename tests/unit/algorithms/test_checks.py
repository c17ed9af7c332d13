"""Combinations that cannot work are refused, those that do nothing are named (traps 8 and 53)."""

import pytest

from windage.algorithms import check, names
from windage.errors import ConfigError


@pytest.mark.parametrize("name", names())
def test_defaults_are_fine(name):
    check(name, group_size=8)
    check(name, group_size=8, asynchronous=False, updates_per_batch=4)


@pytest.mark.parametrize("name", ["ppo", "grpo", "dapo"])
def test_entry_log_probs_on_both_sides_hide_the_lag(name):
    with pytest.raises(ConfigError, match=r"would not see staleness.*areal"):
        check(name, {"anchor": "entry"}, updates_per_batch=4)
    check(name, {"anchor": "entry"}, asynchronous=False, updates_per_batch=4)


@pytest.mark.parametrize("name", ["grpo", "dapo"])
def test_a_group_of_one_teaches_nothing(name):
    with pytest.raises(ConfigError, match="group_size"):
        check(name, group_size=1)
    check("copc", group_size=1)


@pytest.mark.parametrize("name", names())
def test_truncated_sampling_has_no_ratio(name):
    with pytest.raises(ConfigError, match="top_p"):
        check(name, truncated_sampling=True)


@pytest.mark.parametrize(
    ("name", "settings", "run", "words"),
    [
        ("ppo", {"anchor": "entry"}, {"asynchronous": False}, "clip never acts"),
        ("areal", {}, {}, "clip never acts"),
        ("ppo", {}, {"asynchronous": False}, "only engine mismatch"),
        ("copc", {"clip": (1, 1)}, {}, "copc_no_recompute"),
        ("sao", {"band": (0, float("inf"))}, {}, "masks nothing"),
    ],
)
def test_what_does_nothing_is_said(name, settings, run, words):
    notes = check(name, settings, **run)
    assert any(words in note for note in notes), notes


def test_nothing_to_say():
    assert check("copc") == ()
    assert check("ppo", updates_per_batch=2) == ()
