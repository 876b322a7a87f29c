"""A graph's run on its pages, and the examples: what its tools did is not called nothing."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from agents.examples.harbour import OFFICE, Harbour
from agents.testing import Trial
from checkpoints.models import Run
from tests.agents.langgraph.test_moves import paid, seq
from tests.agents.langgraph.test_questions import asking, ids
from tests.agents.testing.documents import block
from tests.approvals.cards.verdicts.verdict_forms import APPROVE, reject, say
from tests.factories import ann
from tests.factories.driven_runs import advance_to_rest
from tests.harness.signed_in_clients import signed_in

REQUEST = "Please find a berth for the Aurora, 42 m, on 2027-05-01."
DOCUMENT = "docs/frameworks/langgraph.md"


def page(run: Run, query: str = "") -> str:
    """The run's page in one line."""
    return " ".join(signed_in(ann(run.team)).get(f"/runs/{run.pk}/{query}").content.decode().split())


def test_the_page_says_that_tools_acted_and_folds_what_langgraph_keeps_for_itself() -> None:
    run = paid()
    shown = page(run)
    assert "Not recorded" in shown
    assert "What they changed is not recorded, and nothing undoes it." in shown
    assert "Called pay." in shown
    assert "No effects" not in shown
    shown = page(run, f"?at={seq(run, step='go', next_step='go')}")
    first, kept = (
        "".join(re.findall(r'<th scope="row">.*?</th>', part))
        for part in shown.split("in what the framework keeps for itself", 1)
    )
    assert "messages" in first
    assert "langgraph" not in first
    assert "langgraph" in kept


def test_the_timeline_names_the_tools_that_were_decided_about() -> None:
    run = asking("batched")
    pay, write = ids(run)
    say(run, each={pay: APPROVE, write: reject("No letter.")})
    assert "approved 1 pay; rejected 2 write" in page(advance_to_rest(run))


@pytest.fixture(autouse=True)
def office() -> Any:
    OFFICE.bookings.clear()
    OFFICE.letters.clear()
    return OFFICE


def test_the_subagent_works_both_calls_are_asked_about_and_an_edited_booking_is_made_once_and_told(office: Any) -> None:
    run = Trial(Harbour, messages=[{"role": "user", "content": REQUEST}])
    assert run.asks == "ask", run.reason
    assert run.title == REQUEST
    book, send = run.card.actions
    assert (book.tool, book.arguments["berth"]) == ("book_berth", "North 1")
    assert list(send.verdicts) == ["approve", "edit", "reject", "respond", "later"]
    assert run.card.risk == "high"
    assert "High water on 2027-05-01: 05:40 and 18:05." in str(run.state["messages"])
    assert not office.bookings
    arguments = {**book.arguments, "berth": "Quay 7"}
    run.decide({book.id: {"verdict": "edit", "arguments": arguments}, send.id: {"verdict": "approve"}})
    assert run.status == "completed", run.reason
    assert list(office.bookings.values()) == ["Quay 7 on 2027-05-01"]
    assert len(office.letters) == 1
    last = run.state["messages"][-1]["content"]
    assert "Do not re-issue your original call" in last
    assert "Aurora has Quay 7 on 2027-05-01." in last


def test_the_first_example_asks_before_it_books_and_says_what_came_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "support.py").write_text(block(DOCUMENT, "class Support"))
    monkeypatch.syspath_prepend(tmp_path)
    run = Trial(
        import_module("support").Support, messages=[{"role": "user", "content": "A berth for the Aurora, please."}]
    )
    sys.modules.pop("support")
    [action] = run.card.actions
    assert action.arguments == {"vessel": "Aurora", "berth": "North 1", "date": "2027-05-01"}
    run.approve()
    assert run.status == "completed", run.reason
    assert "Aurora has North 1 on 2027-05-01, paid under " in run.state["messages"][-1]["content"]
