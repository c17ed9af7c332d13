"""What the store says when the disk, the file or another process is in the way."""

from __future__ import annotations

import sqlite3
import subprocess
import sys

import pytest
from tests.pipeline.world import make_group, tasks

from windage.errors import DataError, RecordError
from windage.queue.stamps import Stamps
from windage.queue.store import Layout, Store
from windage.records import Lease
from windage.records.codec import encode

STAMPS = Stamps(tokens=4, oldest=0, newest=0)


def lease(position: int = 0) -> Lease:
    task = next(tasks(start=position))
    return Lease(task=task, group_id=task.task_id, position=position)


def filled(path, *, groups: int = 3) -> None:
    store = Store(path)
    for position in range(groups):
        store.admit(lease(position))
        store.finish(make_group(lease(position)), STAMPS, constant=False, wasted={"engine": 2})
    store.record_batch(0, 0, Layout(positions=(0, 1), rows=((0, 0), (1, 1)), micro_batches=((0, 1),)), dropped=2)
    store.close()


def test_what_was_written_is_read_back(tmp_path):
    filled(tmp_path / "q.db")
    store = Store(tmp_path / "q.db")
    assert [(line.position, line.state, line.batch, line.tokens) for line in store.groups()] == [
        (0, "waiting", 0, 4),
        (1, "waiting", 0, 4),
        (2, "waiting", None, 4),
    ]
    assert store.wasted() == {"engine": 6}
    assert encode(store.group(2)) == encode(make_group(lease(2)))
    assert store.layout(0).rows == ((0, 0), (1, 1))
    assert [(line.step, line.outcome) for line in store.batches()] == [(0, None)]
    store.admit(lease(3))
    store.prune(0)
    assert store.task(3) == lease(3).task, "in flight: kept"
    with pytest.raises(DataError, match="task at position 1 cannot be read"):
        store.task(1)
    store.close()


def test_pruning_keeps_the_line_and_gives_up_the_record(tmp_path):
    filled(tmp_path / "q.db")
    store = Store(tmp_path / "q.db")
    store.prune(1)
    store.group(0)  # its batch is not completed: kept
    store.complete(0, "updated", 1)
    store.prune(0)
    store.group(0)  # no checkpoint covers it
    store.prune(1)
    with pytest.raises(DataError, match="position 0 is gone"):
        store.group(0)
    with pytest.raises(DataError, match="batch 0 is not in the store"):
        store.layout(0)
    store.group(2)
    assert [line.state for line in store.groups()] == ["trained", "trained", "waiting"]
    store.close()


def test_size_on_disk_stays_flat_when_checkpoints_prune(tmp_path):
    store = Store(tmp_path / "q.db")
    sizes = []
    for step in range(60):
        position = step
        store.admit(lease(position))
        store.finish(make_group(lease(position), prompt=5000), STAMPS, constant=False, wasted={})
        layout = Layout(positions=(position,), rows=((0, 0),), micro_batches=((0,),))
        store.record_batch(step, 0, layout, dropped=0)
        store.complete(step, "updated", step + 1)
        store.prune(step)
        sizes.append(sum(file.stat().st_size for file in tmp_path.iterdir()))
    one = len(encode(make_group(lease(0), prompt=5000)))
    assert sizes[-1] < 6 * one, "60 groups were written, at most two are kept"
    assert sizes[-1] <= sizes[29] + 4096
    store.close()


def test_a_second_writer_is_refused(tmp_path):
    store = Store(tmp_path / "q.db")
    code = f"from windage.queue.store import Store\nfrom pathlib import Path\nStore(Path({str(tmp_path / 'q.db')!r}))"
    second = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    store.close()
    assert "DataError" in second.stderr
    assert "is in use" in second.stderr
    assert "another process runs this run" in second.stderr


def test_disk_full_is_one_clear_message_and_what_was_there_stays(tmp_path):
    filled(tmp_path / "q.db")
    store = Store(tmp_path / "q.db")
    pages = store._database.execute("PRAGMA page_count").fetchone()[0]
    store._database.execute(f"PRAGMA max_page_count = {pages + 2}").fetchall()
    store.admit(lease(3))
    with pytest.raises(DataError, match=r"^disk full while writing .*q\.db; free some space, then: windage resume$"):
        store.finish(make_group(lease(3), prompt=50_000), STAMPS, constant=False, wasted={})
    store.close()
    store = Store(tmp_path / "q.db")
    assert [line.state for line in store.groups()] == ["waiting"] * 3 + ["in_flight"]
    store.close()


@pytest.mark.parametrize("damage", ["not a database", "truncated", "header"])
def test_a_damaged_file_is_one_clear_message(tmp_path, damage):
    path = tmp_path / "q.db"
    filled(path, groups=40)
    content = path.read_bytes()
    if damage == "not a database":
        path.write_bytes(b"x" * 5000)
    elif damage == "truncated":
        path.write_bytes(content[: len(content) // 3])
    else:
        path.write_bytes(content[:4096] + b"\xff" * 8192 + content[12288:])
    with pytest.raises(DataError, match="is damaged"):
        store = Store(path)
        try:
            list(store.groups())
            for position in range(40):
                store.group(position)
        finally:
            store.close()


def test_a_flipped_bit_in_a_record_is_noticed(tmp_path):
    filled(tmp_path / "q.db")
    with sqlite3.connect(tmp_path / "q.db") as database:
        (record,) = database.execute("SELECT record FROM records WHERE position = 1").fetchone()
        broken = bytearray(record)
        broken[len(broken) // 2] ^= 1
        database.execute("UPDATE records SET record = ? WHERE position = 1", (bytes(broken),))
    database.close()
    store = Store(tmp_path / "q.db")
    with pytest.raises(DataError, match="group at position 1 cannot be read; got its checksum does not match"):
        store.group(1)
    store.close()


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(DataError, match="cannot write"):
        Store(tmp_path / "nowhere" / "q.db")


def test_another_format_is_refused(tmp_path):
    filled(tmp_path / "q.db")
    with sqlite3.connect(tmp_path / "q.db") as database:
        database.execute("UPDATE meta SET value = '99' WHERE name = 'format'")
    database.close()
    with pytest.raises(DataError, match=r"unknown store format; got 99; expected 1"):
        Store(tmp_path / "q.db")


def test_a_task_is_admitted_once(tmp_path):
    store = Store(tmp_path / "q.db")
    store.admit(lease(0))
    with pytest.raises(RecordError, match="admitted twice; got task 't000' at position 1"):
        store.admit(Lease(task=lease(0).task, group_id="t000", position=1))
    store.close()


@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_transaction_is_whole_or_nothing(tmp_path, durability, monkeypatch):
    store = Store(tmp_path / "q.db", durability=durability)
    store.admit(lease(0))

    def dies(self, wasted):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "_waste", dies)
        with pytest.raises(KeyboardInterrupt):
            store.finish(make_group(lease(0)), STAMPS, constant=False, wasted={})
    assert [line.state for line in store.groups()] == ["in_flight"]
    store.finish(make_group(lease(0)), STAMPS, constant=False, wasted={})
    store.close()
