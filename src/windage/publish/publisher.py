"""Publisher: one version from the learner to every engine, proved before it counts. No torch here.

publish(v)   waits for an earlier publish or resync to end (single writer, trap 47)
             then: learner writes the folder → begin on every engine → commit on every engine → probe every engine
             the version moves only after every engine in rotation confirmed (trap 45)
resync(e)    brings a fresh engine to the published version before it is routable
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import anyio
import numpy as np

from windage.engines.protocol import Engine, EngineStatus, RunningPolicy
from windage.errors import EngineError, EngineUnavailable, PublishError, explain
from windage.learner.protocol import Learner, Published

__all__ = ["Publisher"]


class Publisher:
    """Publishes versions.

    ``engines``   the engines in rotation at this moment
    ``evict``     takes an engine that went away out of rotation and has it restarted; without it, such an engine must
                  already have left ``engines()``, or the publish fails
    ``tolerance`` largest mean absolute difference between learner's and engine's probe log-probs, in nats
    """

    def __init__(
        self,
        *,
        learner: Learner,
        engines: Callable[[], Sequence[Engine]],
        running: RunningPolicy = "drain",
        tolerance: float = 1e-3,
        evict: Callable[[Engine], Awaitable[None]] | None = None,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._learner = learner
        self._engines = engines
        self._running: RunningPolicy = running
        self._tolerance = tolerance
        self._evict = evict
        self._note = note
        self._writer = anyio.Lock()
        self._confirmed: dict[int, tuple[Engine, str, str]] = {}
        self.current: Published | None = None

    @property
    def version(self) -> int:
        """The published version; -1 before the first."""
        return -1 if self.current is None else self.current.version

    async def publish(self, version: int) -> Published:
        """Write the learner's policy as ``version`` and make it live on every engine.

        Raises:
            PublishError: it could not be written, or an engine refused it, or does not serve it after its commit.
        """
        async with self._writer:
            published = await self._learner.publish(version)
            if published.version != version:
                raise PublishError(explain("learner wrote another version", got=published.version, expected=version))
            serving = [engine for engine in self._engines() if await self._attempt(engine, self._begin, published)]
            for engine in serving:
                await self._attempt(engine, self._commit, published)
            self.current = published
            self._forget_departed()
            return published

    async def resync(self, engine: Engine) -> None:
        """Bring ``engine`` to the published version; nothing to do before the first publish.

        Raises:
            PublishError: it refused, or does not serve the version after its commit.
            EngineUnavailable: it went away.
        """
        async with self._writer:
            if self.current is not None:
                await self._begin(engine, self.current)
                await self._commit(engine, self.current)

    async def _attempt(
        self, engine: Engine, action: Callable[[Engine, Published], Awaitable[None]], published: Published
    ) -> bool:
        """Run ``action``; False when the engine has left rotation instead (it comes back through :meth:`resync`)."""
        try:
            await action(engine, published)
        except EngineUnavailable as error:
            if self._evict is not None:
                await self._evict(engine)
            if any(engine is other for other in self._engines()):
                raise PublishError(
                    explain(
                        f"version {published.version} did not reach every engine",
                        got=f"{engine!r}: {error}",
                        expected="each engine in rotation confirms",
                        do="the version did not move; resume the run",
                    )
                ) from error
            self._note(f"published version {published.version} without an engine that went away: {error}")
            return False
        return True

    async def _begin(self, engine: Engine, published: Published) -> None:
        try:
            await engine.begin_update(published.version, published.path)
        except EngineUnavailable:
            raise
        except EngineError as error:
            raise self._refused(engine, published, error) from error

    async def _commit(self, engine: Engine, published: Published) -> None:
        try:
            status = await engine.commit_update(published.version, running=self._running)
            scores = (await engine.score([published.probe_ids]))[0]
        except EngineUnavailable:
            raise
        except EngineError as error:
            raise self._refused(engine, published, error) from error
        self._prove(engine, published, status, np.asarray(scores, dtype=np.float64))
        self._confirmed[id(engine)] = (engine, published.fingerprint, status.fingerprint)

    def _prove(self, engine: Engine, published: Published, status: EngineStatus, scores: np.ndarray) -> None:
        """The engine says the version, its weights changed if ours did, and it scores the probe as the learner does."""
        what = f"{engine!r} does not serve version {published.version} after its commit"
        if status.policy_version != published.version:
            raise PublishError(explain(what, got=f"version {status.policy_version}"))
        _, ours, theirs = self._confirmed.get(id(engine), (engine, published.fingerprint, ""))
        if ours != published.fingerprint and theirs == status.fingerprint:
            raise PublishError(
                explain(
                    what, got=f"unchanged fingerprint {theirs[:12]}", expected="new weights", do=f"see {published.path}"
                )
            )
        wanted = np.asarray(published.probe_logprobs, dtype=np.float64)
        if scores.shape != wanted.shape:
            raise PublishError(explain(what, got=f"{scores.shape} probe scores", expected=wanted.shape))
        gap = float(np.abs(scores[1:] - wanted[1:]).mean())
        if not gap <= self._tolerance:
            raise PublishError(
                explain(
                    what,
                    got=f"mean difference of probe log-probs {gap:.3g}",
                    expected=f"<= {self._tolerance:g}",
                    do="compare dtypes and temperatures of engine and learner (windage doctor)",
                )
            )

    def _refused(self, engine: Engine, published: Published, error: EngineError) -> PublishError:
        return PublishError(
            explain(
                f"version {published.version} was refused by {engine!r}", got=str(error), do="the version did not move"
            )
        )

    def _forget_departed(self) -> None:
        live = {id(engine) for engine in self._engines()}
        self._confirmed = {key: value for key, value in self._confirmed.items() if key in live}
