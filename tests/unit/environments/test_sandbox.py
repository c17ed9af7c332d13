"""The Python tool: what a model reads, and what it cannot do."""

from __future__ import annotations

import os
import signal

import anyio
import psutil
import pytest

from windage.environments.tool_math.config import ToolLimits
from windage.environments.tool_math.failures import ToolBroken, ToolTimeout
from windage.environments.tool_math.last_value import printing_last_value
from windage.environments.tool_math.sandbox import PythonSandbox

pytestmark = pytest.mark.process

LIMITS = ToolLimits(seconds=0.3, memory_mb=16, output_chars=60, workers=2, wait_seconds=5.0)


def outputs(*programs, limits=LIMITS):
    async def run():
        sandbox = PythonSandbox(limits)
        try:
            return [await sandbox.run(program) for program in programs]
        finally:
            await sandbox.aclose()
            await sandbox.aclose()

    return anyio.run(run)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("12+345", "357"),
        ("x = 6\nx * 7", "42"),
        ("print('a')\n'b'", "a\nb"),
        ("print('a'); 5;", "a\n5"),
        ("é = 'ü'; é", "ü"),
        ("f'''x\n{1 +\n1}'''", "x\n2"),
        ("None", ""),
        ("# nothing", ""),
        ("", ""),
        ("import math\nmath.gcd(12, 18)", "6"),
    ],
)
def test_prints_and_the_last_value_are_shown(code, text):
    (output,) = outputs(code)
    assert (output.text, output.failed) == (text, False)


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("1/0", "ZeroDivisionError"),
        ("(", "unexpected EOF"),
        ("while True: pass", "TimeoutError: the code ran longer than 0.3 s"),
        ("[0] * 10**9", "MemoryError"),
        ("def f(): return f()\nf()", "RecursionError"),
        ("open('/etc/passwd').read()", "PermissionError"),
        ("import socket", "ModuleNotFoundError"),
        ("import os\nos.listdir('/')", "PermissionError"),
        ("10 ** 10 ** 7", "Error"),
        ("x" * 10_001, "characters of code"),
    ],
)
def test_broken_slow_and_greedy_code_reads_as_an_error(code, text):
    (output,) = outputs(code)
    assert text in output.text
    assert output.failed
    assert len(output.text) <= LIMITS.output_chars


def test_calls_share_nothing_and_repeat_exactly():
    draw = "import random, time\ntime.sleep(3)\nprint(random.random(), time.time())"
    one, two, stranger = outputs(draw, draw, "random")
    assert one == two
    assert stranger.failed


def test_long_output_is_cut():
    (output,) = outputs("print('ab' * 100)")
    assert len(output.text) == 60
    assert output.text.endswith("ab …")
    assert not output.failed


def test_a_flood_of_output_ends():
    (output,) = outputs("while True: print('x' * 1000)", limits=ToolLimits(seconds=1.0, output_chars=50))
    assert output.failed
    assert len(output.text) <= 50


def test_a_killed_process_fails_the_sample_and_is_replaced():
    async def run():
        sandbox = PythonSandbox(ToolLimits(seconds=20.0, workers=1))
        try:
            await sandbox.run("1")
            (victim,) = children(os.getpid())
            async with anyio.create_task_group() as group:
                group.start_soon(kill_when_busy, victim)
                with pytest.raises(ToolBroken):
                    await sandbox.run("while True: pass")
            assert (await sandbox.run("1 + 1")).text == "2"
        finally:
            await sandbox.aclose()
        assert not children(os.getpid())

    async def kill_when_busy(pid):
        idle = cpu_ticks(pid)
        while cpu_ticks(pid) < idle + 2:  # noqa: ASYNC110 - the call has reached it; no event tells
            await anyio.sleep(0.01)
        os.kill(pid, signal.SIGKILL)

    anyio.run(run)


def test_a_cancelled_call_leaves_the_pool_usable():
    async def run():
        sandbox = PythonSandbox(ToolLimits(seconds=0.5, workers=1))
        try:
            with anyio.move_on_after(0.05):
                await sandbox.run("while True: pass")
            assert (await sandbox.run("2")).text == "2"
        finally:
            await sandbox.aclose()

    anyio.run(run)


def test_waiting_for_a_process_has_a_deadline():
    async def run():
        sandbox = PythonSandbox(ToolLimits(seconds=1.0, workers=1, wait_seconds=0.05))
        seen = []

        async def call():
            try:
                await sandbox.run("while True: pass")
            except ToolTimeout as error:
                seen.append(str(error))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            group.start_soon(call)
        await sandbox.aclose()
        assert len(seen) == 1
        assert "tool.workers" in seen[0]

    anyio.run(run)


@pytest.mark.parametrize("code", ["x = 1", "if True:\n  3", "print(3)", "("])
def test_code_without_a_trailing_value_is_left_alone(code):
    assert printing_last_value(code).startswith(code)


def children(pid):
    return [child.pid for child in psutil.Process(pid).children() if child.name() == "monty"]


def cpu_ticks(pid):
    times = psutil.Process(pid).cpu_times()
    return round(100 * (times.user + times.system))
