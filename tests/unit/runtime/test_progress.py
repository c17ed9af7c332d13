from __future__ import annotations

import io

from windage.runtime.live_progress import LiveProgress
from windage.runtime.progress import PlainProgress, QuietProgress, cells_of, open_progress

LINE = {
    "batch/reward": 0.25,
    "rollout/success": 0.5,
    "staleness/mean": 1.5,
    "staleness/max": 3,
    "staleness/bound": 3,
    "learner/ess": 0.9,
    "queue/waiting": 4,
    "queue/in_flight": 20,
    "speed/engine_tokens": 3210.0,
    "speed/learner_tokens": 2800.0,
    "outcome/skipped": 0,
    "learner/kl": float("nan"),
}


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def test_pipes_get_plain_lines_at_most_one_every_few_seconds_and_always_the_last():
    stream, clock = io.StringIO(), Clock()
    with PlainProgress(steps=6, stream=stream, every=5.0, clock=clock) as progress:
        for step in range(6):
            clock.now += 2.0
            progress.update({"step": step, **LINE})
    lines = stream.getvalue().splitlines()
    assert [line.split()[1] for line in lines] == ["1/6", "4/6", "6/6"]
    assert "\x1b" not in stream.getvalue()
    for text in ("reward 0.250", "success 50.0%", "staleness 1.5 max 3/3", "ESS 0.90", "engine tok/s 3,210"):
        assert text in lines[0]
    assert "left 00:04" in lines[1]
    assert "left" not in lines[-1]


def test_time_left_counts_from_the_first_step_of_this_session():
    stream, clock = io.StringIO(), Clock()
    progress = PlainProgress(steps=100, stream=stream, every=0.0, clock=clock)
    clock.now = 500.0  # warm start, or the redo of a resumed run
    progress.update({"step": 90, **LINE})
    clock.now = 503.0
    progress.update({"step": 91, **LINE})
    first, second = stream.getvalue().splitlines()
    assert "left" not in first
    assert "left 00:24" in second


def test_missing_numbers_leave_their_cells_out():
    assert cells_of({}) == []
    assert ("KL", "nan") not in cells_of(LINE)
    assert dict(cells_of({"outcome/skipped": 2})) == {"skipped": "2"}


def test_the_right_view_for_the_stream(monkeypatch):
    monkeypatch.delenv("TERM", raising=False)
    assert isinstance(open_progress(steps=1, stream=io.StringIO()), PlainProgress)
    assert isinstance(open_progress(steps=1, stream=Terminal()), LiveProgress)
    assert isinstance(open_progress(steps=1, stream=Terminal(), quiet=True), QuietProgress)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(open_progress(steps=1, stream=Terminal()), PlainProgress)


def test_the_live_view_shows_the_table_and_keeps_notes(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "160")
    stream = Terminal()
    with LiveProgress(steps=4, title="quick", stream=stream) as progress:
        progress.update({"step": 1, **LINE})
        progress.note("held-out [after] 2 batches")
    text = stream.getvalue()
    for part in ("quick", "2/4", "1.5 max 3/3", "3,210", "held-out [after] 2 batches"):
        assert part in text


def test_quiet_says_nothing(capsys):
    with open_progress(steps=1, quiet=True) as progress:
        progress.update({"step": 0, **LINE})
        progress.note("x")
    assert capsys.readouterr() == ("", "")
