"""The example: a Deep Agent with a subagent, whose calls are approved and told of."""

from __future__ import annotations

from typing import Any

import pytest

from agents.examples.harbour import Harbour
from agents.examples.harbour.office import OFFICE
from agents.testing import Trial

REQUEST = "Please find a berth for the Aurora, 42 m, on 2027-05-01."


@pytest.fixture(autouse=True)
def office() -> Any:
    """The office's books are empty."""
    OFFICE.bookings.clear()
    OFFICE.letters.clear()
    return OFFICE


def asked() -> Trial:
    return Trial(Harbour, messages=[{"role": "user", "content": REQUEST}])


def test_the_subagent_works_and_both_calls_are_asked_about(office: Any) -> None:
    run = asked()
    assert run.asks == "ask", run.reason
    assert run.title == REQUEST
    book, send = run.card.actions
    assert (book.tool, book.arguments["berth"]) == ("book_berth", "North 1")
    assert list(send.verdicts) == ["approve", "edit", "reject", "respond", "later"]
    assert run.card.risk == "high"
    assert "High water on 2027-05-01: 05:40 and 18:05." in str(run.state["messages"])
    assert not office.bookings


def test_an_edited_booking_is_made_once_and_told(office: Any) -> None:
    run = asked()
    book, send = (each.id for each in run.card.actions)
    arguments = {**run.card.actions[0].arguments, "berth": "Quay 7"}
    run.decide({book: {"verdict": "edit", "arguments": arguments}, send: {"verdict": "approve"}})
    assert run.status == "completed", run.reason
    assert list(office.bookings.values()) == ["Quay 7 on 2027-05-01"]
    assert len(office.letters) == 1
    last = run.state["messages"][-1]["content"]
    assert "Do not re-issue your original call" in last
    assert "Aurora has Quay 7 on 2027-05-01." in last


def test_a_letter_that_is_refused_is_not_sent_and_the_model_reads_why(office: Any) -> None:
    run = asked()
    book, send = (each.id for each in run.card.actions)
    run.decide({book: {"verdict": "approve"}, send: {"verdict": "reject", "reason": "I ring him up."}})
    assert run.status == "completed", run.reason
    assert not office.letters
    assert "I ring him up." in run.state["messages"][-1]["content"]
