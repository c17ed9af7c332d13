"""The window against a slow reference that only knows the definition."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.pipeline.world import make_group, tasks

from windage.assembly.config import AssemblyConfig
from windage.assembly.fifo import FifoAssembler
from windage.errors import StalenessError
from windage.queue.picks import Picks
from windage.queue.window import Window
from windage.records import Lease

GROUPS = [
    make_group(Lease(task=task, group_id=task.task_id, position=position))
    for position, task in enumerate(tasks(12, group_size=1))
]


def build(states: str, width: int) -> Window:
    """One letter a position: w waiting, f in flight, t has a batch, r retired."""
    pool = {position: GROUPS[position] for position, state in enumerate(states) if state == "w"}
    window = Window(width=width, pool=pool)
    for position in range(len(states)):
        window.admit(position)
    for position, state in enumerate(states):
        if state == "t":
            window.take(position)
        if state == "r":
            window.retire(position)
    return window


def reference(states: str, width: int) -> list[int]:
    """Eligible positions by the definition: the first ``width`` live ones from the oldest live one without a batch."""
    live = [position for position, state in enumerate(states) if state != "r"]
    untrained = [position for position in live if states[position] != "t"]
    if not untrained:
        return []
    span = [position for position in live if position >= untrained[0]][:width]
    return [position for position in span if states[position] == "w"]


STATES = st.text("wftr", min_size=0, max_size=12)


@given(states=STATES, width=st.integers(1, 13))
def test_eligible_is_the_definition(states, width):
    window = build(states, width)
    assert [group.position for group in window.eligible()] == reference(states, width)
    for position in range(len(states)):
        assert window.allows(position) == (position in reference(states, width))


@given(states=STATES, width=st.integers(1, 13), count=st.integers(0, 12))
def test_reachable_is_picking_the_oldest_again_and_again(states, width, count):
    window = build(states, width)
    picks = []
    letters = list(states)
    while len(picks) < count and (choices := reference("".join(letters), width)):
        picks.append(choices[0])
        letters[choices[0]] = "t"
    assert [group.position for group in window.reachable(count)] == picks


@given(states=st.text("wftr", max_size=6), width=st.integers(1, 4))
def test_every_order_of_picks_reaches_the_same_number(states, width):
    """What makes ``ready()`` independent of the assembler: no choice can end in a dead end."""
    window = build(states, width)
    most = len(window.reachable(12))
    waiting = [position for position, state in enumerate(states) if state == "w"]
    for order in permutations(waiting):
        trial = Picks(window)
        left = list(order)
        while allowed := [p for p in left if p in {group.position for group in trial.eligible()}]:
            trial.pick(GROUPS[allowed[0]])
            left.remove(allowed[0])
        assert len(trial.groups) == most


def test_a_slow_group_is_overtaken_by_no_more_than_width_minus_one():
    window = build("f" + "w" * 11, 4)
    assert [group.position for group in window.reachable(12)] == [1, 2, 3]
    for position in (1, 2, 3):
        window.take(position)
    assert (window.eligible(), window.anchor) == ([], 0)


def test_a_retired_group_makes_room():
    window = build("fwwwww", 3)
    for position in (1, 2):
        window.take(position)
    assert window.eligible() == []
    window.retire(0)
    assert [group.position for group in window.eligible()] == [3, 4, 5]


def test_an_assembler_is_not_trusted():
    picks = Picks(build("fwww", 3))
    picks.pick(GROUPS[1])
    for position in (0, 1, 3):  # in flight, picked before, beyond the window
        with pytest.raises(StalenessError, match="outside the look-ahead window"):
            picks.pick(GROUPS[position])


def test_trying_picks_leaves_the_window_alone():
    window = build("wwww", 2)
    FifoAssembler(AssemblyConfig()).choose(Picks(window), 3)
    assert [group.position for group in window.eligible()] == [0, 1]
