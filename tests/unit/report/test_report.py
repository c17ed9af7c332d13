from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest

from windage.errors import DataError
from windage.report.build import build_report
from windage.report.picture import build_picture
from windage.report.run_data import read_run
from windage.runtime.run_folder import RunFolder

VOID = {"meta", "br", "link", "img", "input"}


class Page(HTMLParser):
    """Balanced tags, headings, and everything a browser would fetch."""

    def __init__(self, text):
        super().__init__()
        self.open, self.headings, self.fetched, self.scripts = [], [], [], 0
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.fetched += [value for name, value in attrs if name in {"src", "href", "xlink:href", "data"}]
        self.scripts += tag == "script"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_data(self, data):
        if self.open and self.open[-1] in {"h1", "h2"}:
            self.headings.append(data)


def page(run):
    return Page(build_report(run).read_text(encoding="utf-8"))


def test_every_plot_of_a_finished_run_is_there(finished_run):
    made = page(finished_run)
    for heading in (
        *("Learning curve", "Staleness", "Staleness of the rows", "Effective sample size"),
        *("Tokens outside the interval", "Policy update", "Critic", "Queue", "Time per stage", "Tokens per second"),
        *("Engine against learner (nats per token)", "log trace", "Product of the trace weights"),
        *("Ledger", "Sample episodes", finished_run.name),
    ):
        assert heading in made.headings, heading


def test_the_page_needs_nothing_but_itself(finished_run):
    text = build_report(finished_run).read_text(encoding="utf-8")
    made = Page(text)
    assert made.fetched == []
    assert made.scripts == 1
    assert not re.search(r"https?://|@import|url\(", text)
    assert len(text) < 2_000_000


def test_every_svg_is_well_formed_and_its_tooltip_data_is_json(finished_run):
    text = build_report(finished_run).read_text(encoding="utf-8")
    drawings = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)
    assert len(drawings) >= 12
    for drawing in drawings:
        root = ET.fromstring(drawing)
        data = json.loads(root.attrib.get("data-chart", "{}"))
        for series in data.get("series", ()):
            assert all(len(point) == 3 for point in series["points"])


def test_texts_of_the_run_cannot_become_markup(finished_run):
    folder = RunFolder(finished_run)
    evil = "<script>alert(1)</script>"
    folder.append_sample(9, {"task_id": evil, "reward": evil, "stop_reason": evil, "segments": [{"text": evil}]})
    folder.config.write_text(f"name: x\nmodel:\n  path: '{evil}'\n")
    summary = json.loads(folder.summary.read_text())
    folder.summary.write_text(json.dumps({**summary, "machine": evil}))
    text = build_report(finished_run).read_text(encoding="utf-8")
    assert evil not in text
    assert Page(text).scripts == 1


def test_an_unfinished_run_has_a_report_too(unfinished_run):
    text = build_report(unfinished_run).read_text(encoding="utf-8")
    made = Page(text)
    assert "not finished yet" in text
    assert "Learning curve" in made.headings
    assert "60 / 120" in text
    assert "2 min 6 s" in text


def test_a_run_that_has_only_begun(tmp_path):
    RunFolder.create(tmp_path / "run", config="name: x\nsteps: 3\n")
    made = page(tmp_path / "run")
    assert made.headings == ["run"]


def test_gaps_and_single_steps_are_drawn(tmp_path):
    folder = RunFolder.create(tmp_path / "run", config="name: x\n")
    folder.append_metrics(0, {"batch/reward": None, "learner/kl": float("nan"), "staleness/max": 0})
    page(folder.path)
    folder.append_metrics(1, {"batch/reward": 0.5, "learner/kl": float("inf"), "staleness/max": 0})
    page(folder.path)


def test_a_ledger_that_does_not_close_is_said_aloud(finished_run):
    folder = RunFolder(finished_run)
    summary = json.loads(folder.summary.read_text())
    assert "the ledger closes" in build_report(finished_run).read_text()
    summary["ledger"]["failed"] += 1
    folder.summary.write_text(json.dumps(summary))
    assert "the ledger does not close: 1,930 accounted for" in build_report(finished_run).read_text()


def test_no_run_no_report(tmp_path):
    with pytest.raises(DataError, match="no run here"):
        build_report(tmp_path)


def test_the_picture_stands_alone(finished_run, tmp_path):
    path = build_picture(finished_run, tmp_path / "run.svg", title="a < b")
    root = ET.parse(path).getroot()
    text = path.read_text()
    assert root.tag.endswith("svg")
    assert "a &lt; b" in text
    assert "success (held-out)" in text
    assert "bound" in text
    assert not re.search(r'(href|src)="', text)


def test_evaluations_may_be_written_with_short_names(tmp_path):
    folder = RunFolder.create(tmp_path / "run", config="name: x\n")
    folder.append_metrics(0, {"batch/reward": 0.5})
    folder.append_evaluation(0, {"version": 0, "success": 0.5, "episodes": 64})
    folder.append_evaluation(1, {"version": 1, "success": None, "episodes": 0})
    (line, _) = read_run(folder.path).evaluations
    assert line["eval/success_low"] < line["eval/success"] == 0.5 < line["eval/success_high"]
    assert "success (held-out)" in build_report(folder.path).read_text()
