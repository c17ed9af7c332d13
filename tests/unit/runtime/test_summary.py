from __future__ import annotations

import json
from dataclasses import replace

import pytest

from windage.errors import DataError
from windage.runtime.summary import LedgerCounts, Summary, provenance, read_summary, write_summary

LEDGER = LedgerCounts(admitted=10, trained=6, waiting=1, in_flight=1, failed=1, expired=1, rejected=0)
SUMMARY = Summary(
    mode="async",
    algorithm="copc",
    steps=3,
    eval_before=0.4,
    eval_after=None,
    staleness_max=2,
    staleness_bound=3,
    ledger=LEDGER,
    tokens_generated=100,
    tokens_trained=90,
    seconds=1.5,
)


def test_keys_are_those_that_are_promised(tmp_path):
    path = tmp_path / "summary.json"
    write_summary(path, replace(SUMMARY, extra={"machine": "m", "nan": float("nan")}))
    text = path.read_text()
    assert list(json.loads(text, parse_constant=pytest.fail)) == [
        *("mode", "algorithm", "steps", "eval_before", "eval_after", "staleness_max", "staleness_bound", "ledger"),
        *("tokens_generated", "tokens_trained", "seconds", "machine", "nan"),
    ]
    assert list(read_summary(path)["ledger"]) == [
        *("admitted", "trained", "waiting", "in_flight", "failed", "expired", "rejected")
    ]


def test_an_extra_key_cannot_shadow_a_promised_one(tmp_path):
    with pytest.raises(DataError, match="steps"):
        write_summary(tmp_path / "summary.json", replace(SUMMARY, extra={"steps": 9}))


def test_a_ledger_closes_only_when_every_group_has_one_end():
    assert LEDGER.closed
    assert not replace(LEDGER, failed=2).closed


def test_provenance_says_where_a_run_was_made():
    found = provenance()
    assert "cores" in found["machine"]
    assert found["commit"] is None or len(found["commit"]) == 40
    assert "torch" in found["versions"]


def test_a_run_without_summary_has_none(tmp_path):
    assert read_summary(tmp_path / "summary.json") is None
