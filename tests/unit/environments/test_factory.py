"""The whole environment: demonstrations are solved problems, and real rollouts solve real tasks."""

from __future__ import annotations

import itertools

import anyio
import numpy as np
import psutil
import pytest

from windage.engines.protocol import Completion
from windage.environments.tool_math import ToolMath, ToolMathConfig, ToolMathTasks
from windage.environments.tool_math.config import ArithmeticSource, FileSource, ReasoningGymSource, WordProblemSource
from windage.environments.tool_math.families import WITH_EXPRESSION
from windage.environments.tool_math.format import Answer, Call
from windage.environments.tool_math.formats import format_of
from windage.records import Lease
from windage.rollout.character_tokenizer import save_character_tokenizer
from windage.rollout.config import RolloutConfig
from windage.rollout.tokenizer import load_tokenizer
from windage.rollout.worker import RolloutWorker

CONFIGS = [
    ToolMathConfig(),
    ToolMathConfig(format="fenced", sources=(WordProblemSource(), ArithmeticSource())),
    ToolMathConfig(format="tool_call", sources=(WordProblemSource(),)),
    ToolMathConfig(format="fenced", sources=tuple(ReasoningGymSource(family=family) for family in WITH_EXPRESSION)),
]


@pytest.mark.parametrize("config", CONFIGS)
def test_demonstrations_call_the_tool_and_answer(config):
    factory, style = ToolMath(config), format_of(config)
    shown = factory.demonstrations(30, seed=0)
    assert shown == ToolMath(config).demonstrations(30, seed=0)
    assert shown != factory.demonstrations(30, seed=1)
    assert len({talk[-4].content for talk in shown}) >= 28  # a small product may come twice
    for talk in shown:
        assert [m.role for m in talk[-3:]] == ["assistant", style.observation("1", failed=False).role, "assistant"]
        assert isinstance(style.read(talk[-3].content), Call)
        answer = style.read(talk[-1].content)
        assert isinstance(answer, Answer)
        assert answer.text in talk[-2].content


def test_demonstrations_may_guess():
    factory = ToolMath(ToolMathConfig(direct_share=0.5))
    lengths = [len(talk) for talk in factory.demonstrations(200, seed=0)]
    assert set(lengths) == {2, 4}
    assert 60 < lengths.count(2) < 140


def test_demonstrations_are_no_evaluation_tasks():
    config = ToolMathConfig(sources=(ArithmeticSource(max_digits=1),))
    asked = {task.data["program"] + "?" for task in ToolMathTasks(config, seed=0, group_size=1).held_out(20)}
    assert not asked & {talk[0].content for talk in ToolMath(config).demonstrations(500, seed=0)}


def test_sources_without_programs_have_no_demonstrations(tmp_path):
    config = ToolMathConfig(format="fenced", sources=(FileSource(path=tmp_path / "never-read.jsonl"),))
    assert list(ToolMath(config).demonstrations(5, seed=0)) == []


def test_only_the_tool_call_format_has_a_schema():
    assert [len(ToolMath(config).tools()) for config in CONFIGS] == [0, 0, 1, 0]


class Calculating:
    """An engine that plays perfectly: calls the tool with the question, then repeats its result."""

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    async def generate(self, requests):
        return [self._complete(request) for request in requests]

    def _complete(self, request):
        seen = self.tokenizer.decode(request.prompt_ids.tolist())
        question, _, result = seen.partition("=")
        said = f"#{result.rstrip('|')}$" if result else f"<{question.rstrip('?')}>"
        ids = np.array(self.tokenizer.encode(said), np.int32)
        count = len(ids)
        return Completion(
            request_id=request.request_id,
            token_ids=ids,
            logprobs=np.full(count, -0.5, np.float32),
            policy_version=np.zeros(count, np.int32),
            finish_reason="stop",
        )


@pytest.mark.process
def test_rollouts_solve_every_task_and_leave_nothing_behind(tmp_path):
    """1,600 episodes through real sandboxes: success 1, handles and processes flat (traps 18, 19)."""
    tokenizer = load_tokenizer(save_character_tokenizer(tmp_path / "characters"))
    config = ToolMathConfig()
    process = psutil.Process()
    groups = []

    async def wave(worker, tasks):
        async with anyio.create_task_group() as rolling:
            for task in tasks:
                rolling.start_soon(keep, worker, Lease(task=task, group_id=task.task_id, position=0))

    async def keep(worker, lease):
        groups.append(await worker.roll(lease))

    async def scenario():
        stream = ToolMathTasks(config, seed=0, group_size=8).train()
        async with ToolMath(config) as factory:
            worker = RolloutWorker(
                engine=Calculating(tokenizer),
                factory=factory,
                tokenizer=tokenizer,
                config=RolloutConfig(max_tokens=16, max_context=96),
            )
            await wave(worker, itertools.islice(stream, 10))
            settled = process.num_fds()
            for _ in range(9):
                await wave(worker, itertools.islice(stream, 20))
            assert process.num_fds() <= settled
            assert len(process.children()) <= config.tool.workers

    anyio.run(scenario)
    members = [member for group in groups for member in group.trajectories]
    assert len(members) == 8 * 190
    assert not any(group.failures for group in groups)
    assert {member.reward for member in members} == {1.0}
    assert {len(member.turns) for member in members} == {2}
    assert not process.children()
