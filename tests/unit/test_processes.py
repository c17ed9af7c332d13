"""Children really start, talk, die and never outlive the controller."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import psutil
import pytest

from windage.errors import DeadlineExceeded
from windage.processes import ChildDied, describe_exit, spawn

pytestmark = [pytest.mark.process, pytest.mark.anyio]

ECHO = """
from windage.processes import Inbox
inbox = Inbox()
print("stray output must not corrupt frames")
inbox.ready({"got": inbox.config["x"]})
while True:
    inbox.send(inbox.receive()[::-1])
"""


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request):
    return request.param


@pytest.fixture
def child_module(tmp_path, monkeypatch):
    """Writes a module and makes it importable by the child."""

    def write(name: str, source: str) -> str:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        return name

    return write


async def test_echo_and_stop(child_module, tmp_path):
    child = await spawn("echo", child_module("echo_child", ECHO), {"x": 41}, log=tmp_path / "echo.log")
    assert child.ready == {"got": 41}
    payload = os.urandom(3_000_000)
    await child.send(payload)
    assert await child.receive() == payload[::-1]
    await child.stop()
    await child.stop()
    assert child.returncode == 0
    assert "stray output" in (tmp_path / "echo.log").read_text()


async def test_death_while_waiting_names_the_signal_and_the_log(child_module, tmp_path):
    child = await spawn("echo", child_module("echo_child", ECHO), {"x": 1}, log=tmp_path / "echo.log")
    os.kill(child.pid, signal.SIGKILL)
    with pytest.raises(ChildDied, match=r"echo .*SIGKILL.*echo\.log"):
        await child.receive()
    await child.stop()


async def test_failed_start_shows_the_end_of_the_log(child_module, tmp_path):
    module = child_module("broken_child", "raise SystemExit('no such model: nowhere')")
    with pytest.raises(ChildDied, match="no such model: nowhere"):
        await spawn("broken", module, {}, log=tmp_path / "broken.log")


async def test_slow_start_is_killed(child_module, tmp_path):
    module = child_module("slow_child", "from windage.processes import Inbox\nInbox().receive()")
    with pytest.raises(DeadlineExceeded, match=r"slow was not ready in 1 s"):
        await spawn("slow", module, {}, log=tmp_path / "slow.log", deadline=1.0)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_child_dies_with_a_killed_controller(child_module, tmp_path):
    name = child_module("echo_child", ECHO)
    controller = f"""
import anyio
from pathlib import Path
from windage.processes import spawn
async def main():
    child = await spawn("echo", {name!r}, {{"x": 1}}, log=Path({str(tmp_path / "log")!r}))
    print(child.pid, flush=True)
    await anyio.sleep_forever()
anyio.run(main)
"""
    with subprocess.Popen([sys.executable, "-c", controller], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        process.kill()
        process.wait()
    gone, alive = psutil.wait_procs([child], timeout=10)
    assert not alive, f"orphan {alive}"
    assert gone


def test_exit_status_in_words():
    assert describe_exit(-9).startswith("killed by SIGKILL")
    assert describe_exit(3) == "exit code 3"
