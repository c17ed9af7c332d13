"""SlotTable: which sequence's cache lies where, what a new prompt can take over, and when the store must grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from windage.engines.embedded.kv import KVStore

__all__ = ["Slot", "SlotTable", "shared_prefix"]

MIN_SHARED = 16  # tokens; below this, computing a prefix is cheaper than copying it (Windage)
_FIRST_CAPACITY = 256


@dataclass(eq=False, slots=True)
class Slot:
    """One place of the store. ``ids[:computed]`` is what its keys and values stand for."""

    index: int
    ids: list[int] = field(default_factory=list[int])
    computed: int = 0
    busy: bool = False
    mixed: bool = False  # holds keys of older weights (swap with running="keep"): never shared
    used: int = 0
    routes: list[Any] = field(default_factory=list[Any])


def shared_prefix(left: Sequence[int], right: Sequence[int], limit: int) -> int:
    """Length of the common prefix, at most ``limit``; by doubling and bisection over slice comparisons.

    >>> shared_prefix([1, 2, 3, 4], [1, 2, 9, 4], 4), shared_prefix([5], [5], 1), shared_prefix([1], [2], 1)
    (2, 1, 0)
    """
    limit = min(limit, len(left), len(right))
    if left[:limit] == right[:limit]:
        return limit
    low, high = 0, limit  # equal up to low; different somewhere before high
    while high - low > 1:
        middle = (low + high) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle
    return low


class SlotTable:
    """Hands out slots; keeps finished sequences for reuse; stays within ``budget`` token places in all.

    Deterministic: choices depend on the history of calls alone (a logical clock, not time).
    """

    def __init__(self, store: KVStore, *, budget: int, running: int, retained: int, context: int, share: bool) -> None:
        self._store = store
        self._budget = budget
        self._most = running + (retained if share else 0)
        self._context = context
        self._share = share
        self._clock = 0
        self.slots: list[Slot] = []
        self.tokens_reused = 0
        self.tokens_copied = 0

    def acquire(self, ids: list[int], need: int) -> Slot | None:
        """A slot with room for ``need`` tokens, holding as much of ``ids[:-1]`` as is cached; None: wait.

        ``slot.computed`` says how many positions are ready. At least the last prompt token is computed anew, since
        its logits are needed.
        """
        if not self._reserve(need):
            return None
        source, shared = self.best_match(ids)
        whole = source is not None and not source.busy and shared == source.computed
        slot = source if whole and source is not None else self._victim(avoid=source)
        if slot is None:
            return None
        if source is not None and slot is not source:
            self._store.copy(source.index, slot.index, shared)
            self.tokens_copied += shared
        slot.routes = _cut(source.routes, shared) if source is not None else []
        self._clock += 1
        slot.ids, slot.computed, slot.busy, slot.mixed, slot.used = ids, shared, True, False, self._clock
        self.tokens_reused += shared
        return slot

    def best_match(self, ids: list[int]) -> tuple[Slot | None, int]:
        """The slot with the longest usable prefix of ``ids[:-1]``; the earliest among equals."""
        best, longest = None, MIN_SHARED - 1
        if self._share:
            for slot in self.slots:
                if slot.computed > longest and not slot.mixed:
                    shared = shared_prefix(ids, slot.ids, min(len(ids) - 1, slot.computed))
                    if shared > longest:
                        best, longest = slot, shared
        return (best, longest) if best is not None else (None, 0)

    def release(self, slot: Slot) -> None:
        """The sequence ended; its cache stays for reuse until the place is needed."""
        self._clock += 1
        slot.busy, slot.used = False, self._clock
        slot.ids = slot.ids[: slot.computed]
        if slot.mixed or not self._share:
            _forget(slot)

    def forget_free(self) -> None:
        """Drop every retained sequence (weights changed)."""
        for slot in self.slots:
            if not slot.busy:
                _forget(slot)

    def reset(self) -> None:
        """Back to the behaviour of a new table; only while nothing runs.

        The memory stays allocated unless its shape would change what is admitted (capacity bound by the budget).
        """
        assert not any(slot.busy for slot in self.slots), "reset with running sequences"
        self._clock = 0
        self.forget_free()
        if self._allowed(self._store.capacity) < self._most:
            self.slots = []
            self._store.resize(0, 0)

    def _victim(self, avoid: Slot | None) -> Slot | None:
        """A free slot: an empty one, else a new one, else the least recently used (the source only as a last resort).

        When the source itself must be overwritten, it is taken over in place: its prefix is where it should be.
        """
        free = [slot for slot in self.slots if not slot.busy]
        empty = [slot for slot in free if slot.computed == 0]
        if empty:
            return empty[0]
        if len(self.slots) < self._allowed(self._store.capacity):
            self._grow(self._store.capacity)
            return next(slot for slot in self.slots if not slot.busy and slot.computed == 0)
        others = [slot for slot in free if slot is not avoid] or free
        return min(others, key=lambda slot: slot.used) if others else None

    def _allowed(self, capacity: int) -> int:
        return min(self._most, self._budget // max(capacity, 1))

    def _reserve(self, need: int) -> bool:
        """Make room for one more sequence of ``need`` tokens; False when it must wait for another to end."""
        capacity = self._store.capacity
        running = sum(slot.busy for slot in self.slots)
        if need > capacity:
            wanted = max(_FIRST_CAPACITY, 1 << (need - 1).bit_length())
            capacity = min(self._context, wanted)
            if self._allowed(capacity) <= running:
                capacity = need if self._allowed(need) > running else self._store.capacity
            if need > capacity:
                return False
            self._grow(capacity)
        return running < self._allowed(capacity)

    def _grow(self, capacity: int) -> None:
        """More slots (doubling) or a larger capacity; the least recently used retained ones go when room is short."""
        allowed = self._allowed(capacity)
        enlarged = capacity > self._store.capacity
        count = max(len(self.slots), 4) if enlarged else max(4, 2 * len(self.slots))
        count = min(count, allowed)
        kept = sorted(self.slots, key=lambda slot: (not slot.busy, -slot.used))[:count]
        kept = [slot for slot in kept if slot.busy or slot.computed]
        self._store.resize(count, capacity, keep={slot.index: place for place, slot in enumerate(kept)})
        for place, slot in enumerate(kept):
            slot.index = place
        self.slots = kept + [Slot(index) for index in range(len(kept), count)]


def _forget(slot: Slot) -> None:
    slot.ids, slot.computed, slot.mixed, slot.routes = [], 0, False, []


def _cut(routes: list[Any], tokens: int) -> list[Any]:
    """The first ``tokens`` positions of route pieces [layers, n, k]."""
    kept: list[Any] = []
    for piece in routes:
        if tokens <= 0:
            break
        kept.append(piece[:, :tokens])
        tokens -= piece.shape[1]
    return kept
