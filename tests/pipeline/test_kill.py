"""A real kill -9: whatever the queue has returned from is there when the file is opened again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pipeline.world import make_group, tasks

from windage.assembly.config import AssemblyConfig
from windage.assembly.fifo import FifoAssembler
from windage.queue.pacing import Pacing
from windage.queue.queue import TrajectoryQueue

ROOT = Path(__file__).resolve().parents[2]


def opened(path) -> TrajectoryQueue:
    pacing = Pacing.asynchronous(staleness=2, window=4, groups_per_step=4)
    return TrajectoryQueue.open(path, pacing=pacing, assembler=FifoAssembler(AssemblyConfig()))


def work_until_killed(path: str) -> None:
    """Run batches for ever; each transition is announced after the queue has returned from it."""
    with opened(Path(path)) as queue:
        source = tasks(start=queue.admitted)
        for step in range(10**6):
            for _ in range(queue.capacity()):
                lease = queue.admit(next(source))
                queue.finish(make_group(lease, versions=(queue.version, queue.version)))
                print("finished", lease.position, flush=True)
            queue.take(step, step)
            print("taken", step, flush=True)
            queue.complete(step, "updated", step + 1)
            print("completed", step, flush=True)


@pytest.mark.process
@pytest.mark.parametrize("lines", [1, 30, 77, 200])
def test_nothing_that_was_finished_is_lost(tmp_path, lines):
    code = f"from tests.pipeline.test_kill import work_until_killed; work_until_killed({str(tmp_path / 'q.db')!r})"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        said = [child.stdout.readline().split() for _ in range(lines)]
    finally:
        child.send_signal(signal.SIGKILL)
        rest = child.communicate()[0]
    said += [words for line in rest.splitlines(keepends=True) if line.endswith("\n") and (words := line.split())]
    last = {verb: int(number) for verb, number in said}
    with opened(tmp_path / "q.db") as queue:
        assert queue.ledger.trained + queue.ledger.waiting > last["finished"]
        assert queue.completed > last.get("completed", -1)
        assert last.get("taken", -1) <= queue.completed
        for step, batch in enumerate(queue.redo(0)):
            assert (batch.step, len(batch.group_ids)) == (step, 4)
