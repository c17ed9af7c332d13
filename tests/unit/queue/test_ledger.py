from __future__ import annotations

import pytest

from windage.errors import StalenessError
from windage.queue.ledger import Ledger


def ledger_with_one_of_each() -> Ledger:
    ledger = Ledger()
    ledger.admit(6)
    for tokens in (10, 20, 30, 40):
        ledger.finish(tokens=tokens)
    ledger.train(tokens=10)
    ledger.lose("failed", "engine")
    ledger.lose("expired", "age", waiting_tokens=20)
    ledger.lose("rejected", "skipped", waiting_tokens=30)
    ledger.waste("tool_timeout", 5)
    return ledger


def test_every_task_and_token_has_one_place():
    ledger = ledger_with_one_of_each()
    assert ledger.counts() == {
        "admitted": 6,
        "trained": 1,
        "waiting": 1,
        "in_flight": 1,
        "failed": 1,
        "expired": 1,
        "rejected": 1,
    }
    assert ledger.tokens() == {"sampled": 105, "trained": 10, "waiting": 40, "lost": 55}
    assert ledger.lost_tokens == {"age": 20, "skipped": 30, "tool_timeout": 5}
    assert ledger.reasons() == {"failed": {"engine": 1}, "expired": {"age": 1}, "rejected": {"skipped": 1}}


@pytest.mark.parametrize("field", ["admitted", "trained", "waiting", "in_flight"])
def test_a_task_that_vanishes_or_doubles_is_noticed(field):
    ledger = ledger_with_one_of_each()
    setattr(ledger, field, getattr(ledger, field) + 1)
    with pytest.raises(StalenessError, match="the ledger does not close"):
        ledger.check()


@pytest.mark.parametrize("field", ["sampled_tokens", "trained_tokens", "waiting_tokens"])
def test_a_token_that_vanishes_is_noticed(field):
    ledger = ledger_with_one_of_each()
    setattr(ledger, field, getattr(ledger, field) - 1)
    with pytest.raises(StalenessError, match="the token ledger does not close"):
        ledger.check()


def test_more_cannot_come_back_than_was_let_in():
    with pytest.raises(StalenessError):
        Ledger().finish(tokens=1)
