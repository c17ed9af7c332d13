"""Episode: the agent loop of one member, from the opening to a finished trajectory.

opening ─► generate ─► Reply ─► environment.step ─► observation ─┐
              ▲                                                  │ append, token-exact
              └──────────────────────────────────────────────────┘ (or fork, when the template rewrote history)
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
import numpy as np

from windage.engines.protocol import Completion, Engine, GenerateRequest, Sampling
from windage.environments.protocol import Environment, Message, Reply, StepResult
from windage.errors import EngineError, RecordError, explain
from windage.records import Lease, StopReason, Trajectory, Turn
from windage.rollout.boundary import Deadline
from windage.rollout.config import RolloutConfig
from windage.rollout.rows import RowBuilder
from windage.rollout.tokenizer import ChatTokenizer

__all__ = ["Episode", "sampler_seed"]

T = TypeVar("T")


def sampler_seed(task_seed: int, member: int, turn: int) -> int:
    """63 bits from task, member and turn: a re-issued task draws the same tokens from the same weights."""
    digest = hashlib.blake2b(f"{task_seed}/{member}/{turn}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


@dataclass(kw_only=True)
class Episode:
    """One episode of ``lease``'s task; ``tools`` and ``stop`` are the environment's.

    Raises (from :meth:`play`): whatever went wrong; the boundary turns it into a ``Failure``.
    """

    lease: Lease
    member: int
    engine: Engine
    environment: Environment
    tokenizer: ChatTokenizer
    config: RolloutConfig
    tools: Sequence[Mapping[str, Any]]
    stop: tuple[str, ...]
    temperature: float
    clock: Callable[[], float]
    attempt: int = 0
    _rows: list[RowBuilder] = field(default_factory=list[RowBuilder])
    _messages: list[Message] = field(default_factory=list[Message])
    _turns: list[Turn] = field(default_factory=list[Turn])
    _metrics: dict[str, float] = field(default_factory=dict[str, float])
    _reward: float = 0.0
    opening: str = ""

    @property
    def trajectory_id(self) -> str:
        """Stable over re-issues."""
        return f"{self.lease.group_id}/{self.member}"

    @property
    def sampled(self) -> int:
        """Tokens sampled so far, for the ledger when the episode fails."""
        return sum(row.actions for row in self._rows)

    async def play(self) -> Trajectory:
        """Play to the end."""
        started = self.clock()
        opening = await self._within(self.environment.reset(self.lease.task), "environment", self.config.step_seconds)
        self._messages = list(opening)
        self._rows = [RowBuilder(self.tokenizer.opening(opening, tools=self.tools))]
        self.opening = self.tokenizer.decode(self._rows[0].token_ids, special=True)
        stop_reason = StopReason.TRUNCATED
        for turn in range(self.config.max_turns):
            if not self._fits(0):
                break
            ended = await self._turn(turn)
            if ended is not None:
                stop_reason = ended
                break
        return self._finished(stop_reason, started)

    async def _turn(self, turn: int) -> StopReason | None:
        """One model call and its answer; why the episode ends, or None when it goes on."""
        completion = await self._generate(turn)
        row = self._rows[-1]
        start, stop = row.sampled(completion, turn=turn)
        truncated = completion.finish_reason == "length"
        text = self.tokenizer.reply_text(completion.token_ids.tolist())
        reply = Reply(turn=turn, text=text, truncated=truncated)
        answer = await self._within(self.environment.step(reply), "tool_timeout", self.config.step_seconds)
        if answer.reward:
            row.reward(answer.reward)
        self._reward += answer.reward
        self._metrics.update(answer.metrics)
        self._turns.append(
            Turn(
                turn_id=turn,
                row=len(self._rows) - 1,
                start=start,
                stop=stop,
                finish_reason=completion.finish_reason,
                text=text,
                observation="\n".join(message.content for message in answer.messages),
            )
        )
        if answer.done:  # the environment knows whether a reply that was cut off was whole
            return answer.stop_reason
        if truncated:  # never generate after it (trap 48)
            return StopReason.TRUNCATED
        return None if self._observe(text, completion, answer) else StopReason.TRUNCATED

    def _request_id(self, turn: int) -> str:
        """Unique in flight: the engine may still be ending the request of an attempt that ran out of time."""
        again = f"~{self.attempt}" if self.attempt else ""
        return f"{self.lease.group_id}.{self.lease.attempt}/{self.member}/{turn}{again}"

    async def _generate(self, turn: int) -> Completion:
        row = self._rows[-1]
        request = GenerateRequest(
            request_id=self._request_id(turn),
            prompt_ids=np.asarray(row.token_ids, np.int32),
            sampling=Sampling(
                max_tokens=self.config.max_tokens,
                temperature=self.temperature,
                top_p=self.config.top_p,
                top_k=self.config.top_k,
                stop_token_ids=self.tokenizer.stop_token_ids,
                stop=self.stop,
                seed=sampler_seed(self.lease.task.seed, self.member, turn),
                entropy=self.config.entropy,
                routes=self.config.routes,
            ),
        )
        (completion,) = await self._within(self.engine.generate([request]), "engine", self.config.engine_seconds)
        if completion.finish_reason == "aborted":
            raise EngineError(explain(f"request {request.request_id} was aborted", do="play the member again"))
        if not len(completion.token_ids):
            raise EngineError(explain(f"request {request.request_id} came back empty", expected="at least one token"))
        if (completion.token_ids >= self.tokenizer.vocab_size).any():
            raise RecordError(
                explain(
                    "sampled an id outside the tokenizer",
                    got=int(completion.token_ids.max()),
                    expected=f"< {self.tokenizer.vocab_size}",
                )
            )
        return completion

    def _observe(self, text: str, completion: Completion, answer: StepResult) -> bool:
        """Append the observation, or fork the row; False when it and the next turn no longer fit the context."""
        history, observation = self._messages, answer.messages
        kept = self.tokenizer.preserves(history, text, observation, tools=self.tools)
        self._metrics["rewritten"] = self._metrics.get("rewritten", 0.0) + (not kept)
        messages = [*history, Message(role="assistant", content=text), *observation]
        if not kept and self.config.history == "fork":
            prompt = self.tokenizer.opening(messages, tools=self.tools)
            if len(prompt) + self.config.max_tokens > self.config.max_context:
                return False
            self._rows.append(RowBuilder(prompt))
        else:
            added = self.tokenizer.following(
                history, observation, sampled_end=int(completion.token_ids[-1]), tools=self.tools
            )
            if not self._fits(len(added)):
                return False
            self._rows[-1].observed(added)
        self._messages = messages
        return True

    def _fits(self, more: int) -> bool:
        return len(self._rows[-1]) + more + self.config.max_tokens <= self.config.max_context

    def _finished(self, stop_reason: StopReason, started: float) -> Trajectory:
        if not self._turns:
            raise RecordError(
                explain(
                    "the prompt leaves no room for a reply",
                    got=f"{len(self._rows[0])} tokens",
                    expected=f"<= max_context - max_tokens = {self.config.max_context - self.config.max_tokens}",
                    do="raise rollout.max_context, or filter the tasks",
                )
            )
        rows = [row for row in self._rows if row.actions]
        return Trajectory(
            trajectory_id=self.trajectory_id,
            group_id=self.lease.group_id,
            task_id=self.lease.task.task_id,
            rows=tuple(
                row.build(
                    row_id=f"{self.trajectory_id}/{index}",
                    trajectory_id=self.trajectory_id,
                    group_id=self.lease.group_id,
                    stop_reason=stop_reason,
                )
                for index, row in enumerate(rows)
            ),
            reward=self._reward,
            stop_reason=stop_reason,
            turns=tuple(self._turns),
            metrics=self._metrics,
            started=started,
            finished=self.clock(),
        )

    @staticmethod
    async def _within(answer: Awaitable[T], reason: str, seconds: float) -> T:
        """Wait for ``answer``; :class:`Deadline` with ``reason`` when it takes longer than ``seconds``."""
        with anyio.move_on_after(seconds) as scope:
            return await answer
        assert scope.cancelled_caught
        raise Deadline(reason, seconds)
