"""A gate's page: its titles, its questions, what it asks of the database, and where its live feed begins."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

from approvals.models import Gate
from approvals.presentation import topbar
from checkpoints.actors import SYSTEM
from checkpoints.events import event_log
from checkpoints.events.commit_order import Cursor
from checkpoints.models import Event
from tests.agents.pages.stored_histories import PROPOSAL, begin
from tests.agents.pages.test_long_runs import LONG, MOST
from tests.factories import ann, bob, decide, make_gate, make_plan, make_run, make_spec, make_team
from tests.factories.runs import STEPS
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import form_of, post, signed_in

OPEN = MOST + 4  # as a run's page; runs that it started, who is on it, what others did before, who rejected it and why


def sent_back(turns: int) -> Gate:
    team = make_team()
    walk, reviewer = begin(team, started_by=bob(team)), ann(team)
    walk.save("find_order", {"order": {"number": "A-1", "letter": LONG}}, "propose")
    for turn in range(turns):
        walk.save("propose", {"proposal": PROPOSAL | {"note": f"turn {turn}"}}, "review")
        decide(walk.ask(), reviewer, "reject", then="back", back_to="propose", comment=f"Not {turn}.")
        walk.go_on()
        walk.save("review", {}, "propose", kind="gate")
        walk.rewind(2, "propose", {"feedback": [{"text": f"turn {turn}"}]})
    walk.save("propose", {"proposal": PROPOSAL}, "review")
    return walk.ask()


def test_a_gates_page_asks_the_database_no_more_of_one_that_was_asked_often() -> None:
    asked = []
    for turns in (2, 5):
        gate = sent_back(turns)
        client = signed_in(ann(gate.team))
        client.get(f"/gates/{gate.pk}/")  # a process reads once which agents it has
        with sent() as statements:
            page = client.get(f"/gates/{gate.pk}/").content.decode()
        assert "If you send it back to" in page
        asked.append(len(statements))
        assert len(statements) <= OPEN, "\n".join(each[:200] for each in statements)
    assert asked[0] == asked[1]


TITLES = {
    "find_order": "Look the order up",
    "propose": "Draft the refund",
    "review": "Check the refund",
    "pay": "Hand the money back",
    "reply": "Write to the customer",
}
NAMES = re.compile(r"\b(find_order|propose|review|pay|cancel_payment)\b")


def titled_gate() -> Gate:
    """An open gate of a run whose steps all have titles that hold no word of their names."""
    team = make_team()
    steps = tuple(replace(step, title=TITLES[step.name]) for step in STEPS)
    return make_gate(run=make_run(team=team, plan=make_plan(make_spec(steps=steps))), team=team)


def read(gate: Gate, address: str) -> str:
    page = signed_in(ann(gate.team)).get(address).content.decode()
    page = re.sub(r"(?s)<(script|style|svg|template)\b.*?</\1>", " ", page)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page))


def test_an_open_gate_and_how_one_ended_are_told_in_titles() -> None:
    approved, back = titled_gate(), titled_gate()
    decide(approved, ann(approved.team))
    decide(back, ann(back.team), "reject", then="back", back_to="propose")
    texts = [read(gate, f"/gates/{gate.pk}/") for gate in (approved, back)]
    assert "Next: “Hand the money back” and “Write to the customer”." in texts[0]
    assert "goes back to “Draft the refund”" in texts[1]
    gate = titled_gate()
    texts += [read(gate, f"/gates/{gate.pk}/{address}") for address in ("", "preview/")]
    assert all("Hand the money back" in text for text in texts[2:])
    assert [NAMES.findall(text) for text in texts] == [[]] * 4


def test_a_gate_that_was_answered_says_with_what() -> None:
    team = make_team()
    gate, reviewer = make_gate(team=team, kind="recovery"), ann(team)
    assert post(reviewer, gate, form_of(gate, "answer", answer="not_happened")).status_code == 303
    page = signed_in(reviewer).get(f"/gates/{gate.pk}/").content.decode()
    assert re.search(r"“(<[^>]+>)?It did not<", page)


@pytest.mark.parametrize("page", ["/", "/runs/{run}/"])
def test_what_happens_after_a_page_was_read_and_before_it_is_written_is_heard_of(page: str) -> None:
    """A run that ended in that moment was shown as running until the page was loaded anew."""
    gate = make_gate(team=make_team())
    frame = topbar.frame

    def late(request: Any) -> dict[str, Any]:
        event_log.record("run.completed", subject=f"run:{gate.run_id}", run=gate.run, by=SYSTEM)
        return frame(request)

    with mock.patch.object(topbar, "frame", late):
        html = signed_in(ann(gate.run.team)).get(page.format(gate=gate.pk, run=gate.run_id)).content.decode()
    [started] = re.findall(r'data-cursor="([^"]*)"', html)
    missed = Event.objects.filter(kind="run.completed", run_id=gate.run_id).latest("pk")
    assert Cursor.parse(started) < Cursor.from_event(missed)
