"""Scheduler: the thread that owns the model. Others hand it commands; between two steps it obeys them.

waits for    a command, when nothing is in generation
unblocked by submit, abort, score, commit, or stop
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from windage.engines.embedded.batcher import Batcher
from windage.engines.embedded.door import check_request, check_score
from windage.engines.embedded.generation import Generation
from windage.engines.embedded.model import ServedModel
from windage.engines.embedded.noise import derive_seed
from windage.engines.embedded.scorer import score_in_chunks
from windage.engines.embedded.stop_strings import StopStrings
from windage.engines.embedded.weights import Staged, fingerprint, owned_weights, stage, swap
from windage.engines.protocol import Completion, EngineStatus, GenerateRequest, RunningPolicy
from windage.errors import EngineError, explain

__all__ = ["EngineBusy", "Scheduler"]


class EngineBusy(EngineError):
    """Too many requests wait already; the caller may try again later."""


@dataclass(kw_only=True)
class _Scoring:
    chunks: Iterator[list[NDArray[np.float32]]]
    done: Future[list[NDArray[np.float32]]]
    scores: list[NDArray[np.float32]] = field(default_factory=list[NDArray[np.float32]])


@dataclass(frozen=True, kw_only=True)
class _Swap:
    staged: Staged
    running: RunningPolicy
    done: Future[None]


class Scheduler:
    """Thread-safe front of a :class:`~windage.engines.embedded.batcher.Batcher`."""

    def __init__(self, model: ServedModel) -> None:
        self._model = model
        self._batcher = Batcher(model)
        self._commands: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._live: dict[str, Generation] = {}
        self._arrivals = 0
        self._scorings: list[_Scoring] = []
        self._swaps: list[_Swap] = []
        self._staged: Staged | None = None
        self._updating = threading.Lock()
        self._fingerprint = fingerprint(owned_weights(model.hf).items())
        self._busy_seconds = 0.0
        self._running = True
        self._thread = threading.Thread(target=self._run, name="scheduler", daemon=True)

    def load(self, version: int, path: str) -> None:
        """Take over the weights in ``path`` before the thread starts.

        Raises:
            EngineError: they cannot be served.
        """
        self._apply(stage(self._model.hf, version, path), "drain")

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Finish the step at hand and end the thread; what is unfinished stays so."""

        def leave() -> None:
            self._running = False

        self._commands.put(leave)
        self._thread.join()

    def submit(
        self, requests: Sequence[GenerateRequest], *, on_token: Callable[[Generation], None] | None = None
    ) -> Future[list[Completion]]:
        """Enter all requests into the schedule as one, in order; the completions come in the same order.

        ``on_token`` is called on the scheduler's thread after each sampled token.

        Raises:
            EngineError: one of them cannot be served; none has entered.
            EngineBusy: too many wait.
        """
        names = [request.request_id for request in requests]
        taken = sorted({name for name in names if name in self._live or names.count(name) > 1})
        if taken:
            raise EngineError(explain("request ids are in use", got=taken[:4], expected="ids unique in flight"))
        if len(self._live) + len(requests) > self._model.config.max_waiting + self._model.config.max_batch:
            raise EngineBusy(
                explain("too many requests", got=len(self._live) + len(requests), do="raise max_waiting or wait")
            )
        for request in requests:
            check_request(request, self._model, cache=self._batcher.budget)
        done: Future[list[Completion]] = Future()
        wave: list[Generation] = []
        left = len(requests)

        def ended(generation: Generation) -> None:
            nonlocal left
            del self._live[generation.request.request_id]
            left -= 1
            if not left:
                done.set_result([each.completion() for each in wave])

        wave.extend(self._generation(request, ended, on_token) for request in requests)
        for generation in wave:
            self._live[generation.request.request_id] = generation
        if wave:
            self._commands.put(lambda: self._batcher.waiting.extend(wave))
        else:
            done.set_result([])
        return done

    def abort(self, request_ids: Sequence[str]) -> None:
        """End these requests before the next step."""
        self._commands.put(partial(self._batcher.abort, tuple(request_ids)))

    def score(self, rows: Sequence[NDArray[np.int32]], *, temperature: float) -> Future[list[NDArray[np.float32]]]:
        """Log-probs of ``rows``; cancelling the future ends the job.

        Raises:
            EngineError: a row cannot be scored.
        """
        check_score(rows, temperature, self._model)
        job = _Scoring(
            chunks=score_in_chunks(self._model, rows, temperature=temperature, chunk=self._batcher.chunk),
            done=Future(),
        )
        self._commands.put(lambda: self._scorings.append(job))
        return job.done

    def begin_update(self, version: int, path: str) -> None:
        """Read and check the weights in ``path`` beside the current ones; blocks its caller, not the sampling.

        Raises:
            EngineError: they cannot be served; the current ones go on.
        """
        with self._updating:
            self._check_order(version)
            self._staged = None  # at most one spare set of weights at a time
            self._staged = stage(self._model.hf, version, path)

    def commit_update(self, version: int, *, running: RunningPolicy) -> Future[None]:
        """Swap to the staged weights as soon as ``running`` allows it.

        Raises:
            EngineError: no weights of this version are staged.
        """
        with self._updating:
            done: Future[None] = Future()
            staged, self._staged = self._staged, None
            if staged is None or staged.version != version:
                self._staged = staged
                raise EngineError(
                    explain(
                        f"cannot commit version {version}",
                        got="nothing staged" if staged is None else f"version {staged.version} staged",
                        do=f"begin_update({version}, …) first",
                    )
                )
            job = _Swap(staged=staged, running=running, done=done)
            self._commands.put(lambda: self._swaps.append(job))
            return done

    def status(self) -> EngineStatus:
        """Counters as they are now."""
        batcher = self._batcher
        return EngineStatus(
            policy_version=batcher.policy_version,
            fingerprint=self._fingerprint,
            running=len(batcher.running),
            waiting=len(self._live) - len(batcher.running),
            tokens_generated=batcher.tokens_generated,
            vocab_size=self._model.limit,
            device=str(self._model.device),
            busy_seconds=self._busy_seconds,
        )

    def _check_order(self, version: int) -> None:
        if version < max(self._batcher.policy_version, 0):
            raise EngineError(
                explain(
                    "versions never run backwards", got=version, expected=f">= {max(self._batcher.policy_version, 0)}"
                )
            )

    def _generation(
        self,
        request: GenerateRequest,
        ended: Callable[[Generation], None],
        on_token: Callable[[Generation], None] | None,
    ) -> Generation:
        sampling = request.sampling
        seed = sampling.seed
        if seed is None:
            seed = derive_seed(self._model.config.seed, self._arrivals)
        self._arrivals += 1
        stops = None
        if sampling.stop:
            stops = StopStrings(sampling.stop, decode=self._model.decode, text_of=self._model.text_of)
        return Generation(request=request, seed=seed, on_done=ended, on_token=on_token, stop_strings=stops)

    def _run(self) -> None:
        with torch.inference_mode():
            while self._running:
                self._obey()
                started = time.perf_counter()
                self._work()
                self._busy_seconds += time.perf_counter() - started

    def _obey(self) -> None:
        """Carry out every command at hand; wait for one when there is no work."""
        if not (self._batcher.busy or self._scorings or self._swaps):
            self._commands.get()()
        while not self._commands.empty():
            self._commands.get()()

    def _work(self) -> None:
        if self._swaps:
            self._try_swap()
        if self._scorings:
            self._score_some(self._scorings[0])
        if self._batcher.busy:
            self._batcher.step()

    def _try_swap(self) -> None:
        if self._scorings and self._scorings[0].scores:
            return  # one answer, one version: a job that has begun ends on the weights it began with
        job = self._swaps[0]
        self._batcher.held = job.running == "drain"
        if self._batcher.held and self._batcher.running:
            return
        self._apply(job.staged, job.running)
        self._batcher.held = False
        self._swaps.pop(0)
        job.done.set_result(None)

    def _apply(self, staged: Staged, running: RunningPolicy) -> None:
        swap(self._model.hf, staged)
        self._model.refresh()
        self._batcher.swapped(staged.version, running)
        self._fingerprint = staged.fingerprint

    def _score_some(self, job: _Scoring) -> None:
        chunk = None if job.done.cancelled() else next(job.chunks, None)
        if chunk is not None:
            job.scores.extend(chunk)
            return
        self._scorings.pop(0)
        if job.done.set_running_or_notify_cancel():
            job.done.set_result(job.scores)
