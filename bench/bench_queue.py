"""Queue: groups a second through admit + finish + take + complete, against the floor of writing the same bytes.

The floor is one SQLite transaction a group that inserts the encoded record, with the same settings; encoding excluded.
    python bench/bench_queue.py
"""

from __future__ import annotations

import json
import platform
import sqlite3
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from windage.assembly.config import AssemblyConfig
from windage.assembly.fifo import FifoAssembler
from windage.queue.config import QueueConfig
from windage.queue.pacing import Pacing
from windage.queue.queue import TrajectoryQueue
from windage.records import Lease, Row, StopReason, Task, Trajectory, TrajectoryGroup
from windage.records.codec import encode

ROOT = Path(__file__).resolve().parents[1]
GROUPS_PER_STEP = 16
REPEATS = 4  # the best counts: other processes share the cores


def make_group(lease: Lease, *, members: int, tokens: int, version: int) -> TrajectoryGroup:
    mask = np.arange(tokens) >= tokens // 4
    rows = [
        Row(
            row_id=f"{lease.group_id}/{member}/0",
            trajectory_id=f"{lease.group_id}/{member}",
            group_id=lease.group_id,
            token_ids=np.arange(tokens, dtype=np.int32),
            action_mask=mask,
            behavior_logprobs=np.where(mask, -0.5, np.nan).astype(np.float32),
            policy_version=np.where(mask, version, -1).astype(np.int32),
            rewards=np.zeros(tokens, np.float32),
            turn_ids=np.where(mask, 0, -1).astype(np.int32),
            stop_reason=StopReason.EOS,
        )
        for member in range(members)
    ]
    trajectories = tuple(
        Trajectory(
            trajectory_id=row.trajectory_id,
            group_id=lease.group_id,
            task_id=lease.task.task_id,
            rows=(row,),
            reward=float(member % 2),
            stop_reason=StopReason.EOS,
        )
        for member, row in enumerate(rows)
    )
    return TrajectoryGroup(group_id=lease.group_id, task=lease.task, position=lease.position, trajectories=trajectories)


def queue_rate(path: Path | None, *, groups: int, members: int, tokens: int, durability: str) -> dict[str, float]:
    """Groups a second of wall clock and of CPU, and where the time goes (µs a group), without making the records."""
    pacing = Pacing.asynchronous(staleness=2, window=GROUPS_PER_STEP, groups_per_step=GROUPS_PER_STEP)
    spent = dict.fromkeys(("admit", "finish", "ready_take", "complete"), 0.0)

    cpu = 0.0

    def timed(name, call, *args):
        nonlocal cpu
        before, cpu_before = time.perf_counter(), time.process_time()
        result = call(*args)
        cpu += time.process_time() - cpu_before
        spent[name] += time.perf_counter() - before
        return result

    queue = TrajectoryQueue.open(
        path,
        pacing=pacing,
        assembler=FifoAssembler(AssemblyConfig()),
        config=QueueConfig(durability=durability),
        steps=groups // GROUPS_PER_STEP,
    )
    source = (Task(task_id=f"t{index}", source="bench", group_size=members) for index in range(groups))
    with queue:
        for step in range(groups // GROUPS_PER_STEP):
            leases = [timed("admit", queue.admit, next(source)) for _ in range(queue.capacity())]
            for lease in leases:
                timed("finish", queue.finish, make_group(lease, members=members, tokens=tokens, version=step))
                timed("ready_take", queue.ready)
            timed("ready_take", queue.take, step, step)
            timed("complete", queue.complete, step, "updated", step + 1)
            if step % 8 == 7:
                timed("complete", queue.checkpointed, step + 1)
    rates = {"groups_per_second": groups / sum(spent.values()), "groups_per_cpu_second": groups / cpu}
    return {**rates, **{k: 1e6 * v / groups for k, v in spent.items()}}


def floor_rate(path: Path, *, groups: int, members: int, tokens: int) -> float:
    """Groups a second when nothing is done but one transaction a group with the record's bytes."""
    lease = Lease(task=Task(task_id="t", source="bench", group_size=members), group_id="t", position=0)
    record = encode(make_group(lease, members=members, tokens=tokens, version=0))
    database = sqlite3.connect(path, isolation_level=None)
    for pragma in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = NORMAL"):
        database.execute(f"PRAGMA {pragma}").fetchall()
    database.execute("CREATE TABLE records (position INTEGER PRIMARY KEY, record BLOB)")
    before = time.perf_counter()
    for position in range(groups):
        database.execute("INSERT INTO records VALUES (?, ?)", (position, record))
    seconds = time.perf_counter() - before
    database.close()
    return groups / seconds


def main() -> None:
    results = []
    for members, tokens, groups in ((4, 64, 4096), (8, 512, 2048), (8, 4096, 512)):
        with tempfile.TemporaryDirectory() as folder:
            at = Path(folder)
            size = {"members": members, "tokens": tokens}
            floors = [floor_rate(at / f"floor{turn}.db", groups=groups // 2, **size) for turn in range(REPEATS)]
            disks = [
                queue_rate(at / f"queue{turn}.db", groups=groups // 2, durability="process", **size)
                for turn in range(REPEATS)
            ]
            floor, disk = max(floors), max(disks, key=lambda rates: rates["groups_per_second"])
            memory = queue_rate(None, groups=groups, durability="process", **size)
            power = queue_rate(at / "power.db", groups=min(groups, 512), durability="power", **size)
        results.append(
            {**size, "floor_groups_per_second": floor, "disk": disk, "memory": memory, "power": power}
            | {"share_of_floor": disk["groups_per_second"] / floor}
        )
        print(json.dumps(results[-1], indent=1))
    commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=ROOT, check=False)
    line = {"benchmark": "queue", "machine": platform.platform(), "commit": commit.stdout.strip(), "results": results}
    target = ROOT / "bench" / "results" / "queue.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(line, indent=1) + "\n")


if __name__ == "__main__":
    main()
