"""Batcher: continuous batching. Each step is one forward pass over every running sequence's next tokens.

Synchronous and deterministic: the same calls in the same order give the same bits. Threads live in ``scheduler``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

import torch

from windage.engines.embedded.generation import Generation
from windage.engines.embedded.kv import KVStore
from windage.engines.embedded.memory import free_bytes
from windage.engines.embedded.model import ServedModel
from windage.engines.embedded.noise import uniforms
from windage.engines.embedded.plan import Piece, Plan
from windage.engines.embedded.sampler import Draw, Knobs, sample
from windage.engines.embedded.slots import MIN_SHARED, SlotTable, shared_prefix
from windage.engines.protocol import RunningPolicy

__all__ = ["Batcher"]


class Batcher:
    """Waiting and running sequences of one model. ``policy_version`` is stamped on every token when it is sampled."""

    def __init__(self, model: ServedModel) -> None:
        config = model.config
        self._model = model
        self._store = KVStore(model.kv_shape)
        fitting = int(config.kv_fraction * free_bytes(model.device)) // model.kv_shape.bytes_per_token
        self.budget = config.kv_tokens or max(fitting, model.context)
        self._retained = config.max_batch if config.retained < 0 else config.retained
        self.table = SlotTable(
            self._store,
            budget=self.budget,
            running=config.max_batch,
            retained=self._retained,
            context=model.context,
            share=config.prefix_cache,
        )
        self._most = config.max_batch
        self.chunk = config.prefill_tokens or (8192 if model.device.type == "cuda" else 1024)
        self.policy_version = config.policy_version
        self.waiting: deque[Generation] = deque()
        self.running: list[Generation] = []
        self.held = False
        self.tokens_generated = 0

    @property
    def busy(self) -> bool:
        """Whether :meth:`step` has something to do."""
        return bool(self.running) or (bool(self.waiting) and not self.held)

    def step(self) -> None:
        """Let waiting sequences in, run one forward pass, sample, and report what ended."""
        self._admit()
        if not self.running:
            return
        owners, pieces = self._pieces()
        plan = Plan(pieces=pieces, store=self._store, device=self._model.device)
        hidden = self._model.hidden(plan)
        self._keep_routes(plan, owners)
        ready: list[Generation] = []
        rows: list[int] = []
        for owner, piece, last in zip(owners, pieces, plan.last, strict=True):
            assert owner.slot is not None
            owner.slot.computed = piece.stop
            if piece.stop == len(owner.ids):
                ready.append(owner)
                rows.append(last)
        if ready:
            self._advance(ready, self._draw(ready, hidden[rows]))

    def abort(self, request_ids: Sequence[str]) -> None:
        """End these now, with what they have sampled so far. Unknown ids are ignored: they have just ended."""
        chosen = set(request_ids)
        for generation in [g for g in (*self.running, *self.waiting) if g.request.request_id in chosen]:
            generation.finish_reason = "aborted"
        ended = [g for g in self.waiting if g.finish_reason is not None]
        self.waiting = deque(g for g in self.waiting if g.finish_reason is None)
        for generation in ended:
            generation.on_done(generation)
        self._retire()

    def swapped(self, version: int, running: RunningPolicy) -> None:
        """The weights have just changed: no cached key or value of the old ones is used again (except ``keep``)."""
        self.policy_version = version
        self.table.forget_free()
        for generation in self.running:
            assert generation.slot is not None
            if running == "keep":
                generation.slot.mixed = True
            else:
                generation.slot.computed, generation.slot.routes = 0, []
        if not self.running:
            self.table.reset()

    def _admit(self) -> None:
        if self.held or not self.waiting or len(self.running) >= self._most:
            return
        if not self.running and not self._retained:
            self.table.reset()
        admitted = False
        for generation in list(islice(self.waiting, 4 * self._most)):
            if len(self.running) >= self._most:
                break
            if self._prefix_in_the_making(generation):
                continue
            generation.slot = self.table.acquire(generation.ids, generation.need)
            if generation.slot is None:
                break
            self.running.append(generation)
            admitted = True
        if admitted:
            self.waiting = deque(g for g in self.waiting if g.slot is None)

    def _prefix_in_the_making(self, generation: Generation) -> bool:
        """Whether a running sequence is about to compute a prefix this one can take over (siblings of a group)."""
        ids, best = generation.ids, -1
        if not self._model.config.prefix_cache:
            return False
        for other in self.running:
            assert other.slot is not None
            if other.slot.computed >= other.prompt or other.ids[:MIN_SHARED] != ids[:MIN_SHARED]:
                continue
            shared = shared_prefix(ids, other.ids, min(len(ids) - 1, other.prompt))
            best = best if best >= 0 else self.table.best_match(ids)[1]
            if shared >= MIN_SHARED and shared > max(other.slot.computed, best):
                return True
        return False

    def _pieces(self) -> tuple[list[Generation], list[Piece]]:
        owners: list[Generation] = []
        pieces: list[Piece] = []
        room = self.chunk
        for generation in self.running:
            slot = generation.slot
            assert slot is not None
            count = generation.left_to_compute
            if count > 1:
                count = min(count, room)
                room -= count
                if not count:
                    continue
            owners.append(generation)
            tokens = generation.ids[slot.computed : slot.computed + count]
            pieces.append(Piece(slot=slot.index, start=slot.computed, tokens=tokens))
        return owners, pieces

    def _draw(self, ready: list[Generation], hidden: torch.Tensor) -> Draw:
        device = self._model.device
        asked = [generation.request.sampling for generation in ready]
        knobs = Knobs(
            temperature=torch.tensor([s.temperature for s in asked], dtype=torch.float32, device=device),
            top_k=torch.tensor([s.top_k for s in asked], dtype=torch.long, device=device),
            top_p=torch.tensor([s.top_p for s in asked], dtype=torch.float64, device=device),
            any_greedy=any(s.temperature == 0 for s in asked),
            any_truncated=any(s.top_k > 0 or s.top_p < 1.0 for s in asked),
            any_entropy=any(s.entropy for s in asked),
        )
        noise = torch.from_numpy(uniforms([g.seed for g in ready], [g.sampled for g in ready]))
        return sample(logits=self._model.logits(hidden), uniform=noise.to(device), knobs=knobs)

    def _advance(self, ready: list[Generation], draw: Draw) -> None:
        entropy = [None] * len(ready) if draw.entropy is None else draw.entropy.tolist()
        ended = False
        for generation, token, logprob, spread in zip(
            ready, draw.ids.tolist(), draw.logprobs.tolist(), entropy, strict=True
        ):
            generation.append(token, logprob, self.policy_version, spread)
            ended |= generation.finish_reason is not None
            if generation.on_token is not None:
                generation.on_token(generation)
        self.tokens_generated += len(ready)
        if ended:
            self._retire()

    def _retire(self) -> None:
        ended = [g for g in self.running if g.finish_reason is not None]
        self.running = [g for g in self.running if g.finish_reason is None]
        for generation in ended:
            assert generation.slot is not None
            generation.routes = list(generation.slot.routes)
            self.table.release(generation.slot)
            generation.on_done(generation)

    def _keep_routes(self, plan: Plan, owners: list[Generation]) -> None:
        if self._model.capture is None:
            return
        chosen = self._model.capture.take()
        for owner, piece, last in zip(owners, plan.pieces, plan.last, strict=True):
            assert owner.slot is not None
            owner.slot.routes.append(chosen[:, last + 1 - len(piece.tokens) : last + 1])
