"""SlotTable: what is handed out together fits the budget, and a slot never claims more than it holds."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from windage.engines.embedded.kv import KVShape, KVStore
from windage.engines.embedded.slots import SlotTable, shared_prefix


def table(**settings):
    shape = KVShape(layers=1, heads=1, key_dim=1, value_dim=1, dtype=torch.float32, device=torch.device("cpu"))
    store = KVStore(shape)
    chosen = {"budget": 4096, "running": 4, "retained": 4, "context": 1024, "share": True, **settings}
    return SlotTable(store, **chosen), store


def fill(store, slot):
    """Write each token's id where its key belongs, as a forward pass would."""
    for place in range(slot.computed, len(slot.ids)):
        store.keys[0][slot.index, 0, place] = float(slot.ids[place])
    slot.computed = len(slot.ids)


def holds(store, slot):
    return store.keys[0][slot.index, 0, : slot.computed, 0].tolist() == [float(i) for i in slot.ids[: slot.computed]]


@given(st.lists(st.integers(0, 2), max_size=40), st.lists(st.integers(0, 2), max_size=40), st.integers(0, 50))
def test_shared_prefix_equals_a_loop(left, right, limit):
    count = 0
    while count < min(limit, len(left), len(right)) and left[count] == right[count]:
        count += 1
    assert shared_prefix(left, right, limit) == count


@given(st.data())
def test_random_life(data):
    """Whatever comes and goes: contents stay true, nothing runs beyond the budget, one request always fits."""
    slots, store = table(budget=data.draw(st.sampled_from([300, 700, 4096])), context=300)
    running = []
    stems = [list(range(base, base + 200)) for base in (0, 1000)]
    for _ in range(data.draw(st.integers(1, 25))):
        if running and data.draw(st.booleans()):
            slots.release(running.pop(data.draw(st.integers(0, len(running) - 1))))
            continue
        if len(running) >= 4:
            continue
        length = data.draw(st.integers(1, 200))
        ids = [*data.draw(st.sampled_from(stems))[:length], data.draw(st.integers(0, 9))]
        slot = slots.acquire(ids, len(ids) + data.draw(st.integers(1, 90)))
        if slot is None:
            assert running, "an idle table must admit anything within the context"
            continue
        assert slot.computed < len(ids)
        assert slot not in running
        assert holds(store, slot)
        running.append(slot)
        fill(store, slot)
        assert store.slots * store.capacity <= max(slots._budget, 300)
        assert all(holds(store, each) for each in running)


def test_a_mixed_slot_is_not_shared():
    slots, store = table()
    slot = slots.acquire(list(range(40)), 50)
    fill(store, slot)
    slot.mixed = True
    assert slots.acquire(list(range(41)), 50).computed == 0
    slots.release(slot)
    assert slot.computed == 0


def test_forget_free_keeps_the_running():
    slots, store = table()
    first, second = slots.acquire(list(range(40)), 50), slots.acquire(list(range(100, 140)), 50)
    fill(store, first)
    fill(store, second)
    slots.release(first)
    slots.forget_free()
    assert (first.computed, second.computed) == (0, 40)
