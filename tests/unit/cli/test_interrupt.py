"""Ctrl-C on a real command with a real child: exit code 130, a word on how to go on, and nobody is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import psutil
import pytest

pytestmark = pytest.mark.process

CHILD = """
from windage.processes import Inbox
inbox = Inbox()
inbox.ready({"ok": True})
inbox.receive()
"""
COMMAND = """
import sys, types
from pathlib import Path
import anyio
import windage.runtime
from windage.processes import spawn

async def train(config, run_dir, *, progress):
    child = await spawn("engine", "idle_child", {}, log=Path("child.log"))
    progress.note(f"child {child.pid}")
    try:
        async with anyio.create_task_group() as stages:
            stages.start_soon(anyio.sleep_forever)
            await anyio.sleep_forever()
    finally:
        await child.stop()

module = types.ModuleType("windage.runtime.trainer")
module.train = train
sys.modules[module.__name__] = windage.runtime.trainer = module
from windage.cli.main import main
sys.argv = ["windage", "train", "mine.yaml", "--run-dir", "out"]
main()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_no_child_outlives_the_command(tmp_path, how):
    (tmp_path / "idle_child.py").write_text(CHILD)
    (tmp_path / "mine.yaml").write_text("steps: 20\nmodel: {name: qwen3_random}\n")
    command = subprocess.Popen(
        [sys.executable, "-c", COMMAND],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert command.stdout.readline() == "run folder: out\n"
    child = psutil.Process(int(command.stdout.readline().split()[1]))
    command.send_signal(how)
    _, errors = command.communicate(timeout=30)
    psutil.wait_procs([child], timeout=10)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
    if how == signal.SIGINT:
        assert command.returncode == 130
        assert errors == "stopped; go on with: windage resume out\n"
