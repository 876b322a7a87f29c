"""A program that only asks, and gates that are of one conversation."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F

from agents.models import Effect
from agents.serving.sweeper import Sweeper
from approvals.models import Gate
from tests.agents.remote.outside_program import WIRE, Program, decide
from tests.factories import make_user
from tests.harness.signed_in_clients import signed_in

ACTION: dict[str, Any] = {"id": "wire", "arguments": WIRE}


def posted(program: Program, **more: Any) -> Gate:
    """A gate that the program posts."""
    told = program.ok(program.post("gates", {"title": "Wire 120.00?", "actions": [ACTION], **more}))
    program.run = told["run"]
    return Gate.objects.get(pk=told["gate"])


def later(gate: Gate) -> None:
    """Age its closing past the time in which its program may be first."""
    Gate.objects.filter(pk=gate.pk).update(closed_at=F("closed_at") - timedelta(minutes=1))


@pytest.mark.parametrize("said", ["approve", "edit", "respond", "reject"])
def test_its_run_ends_with_the_decision_and_nobody_claims_it(said: str) -> None:
    program = Program()
    takes = {**ACTION, "verdicts": ["approve", "edit", "reject", "respond"]}
    gate = posted(program, ask_only=True, actions=[takes])
    if said == "respond":
        decide(gate, "", verdicts={"wire": {"verdict": "respond", "response": "By card."}})
    elif said == "edit":
        decide(gate, "edit", arguments={"wire": {**WIRE, "amount": "1.00"}})
    else:
        decide(gate, said, comment="Fine.")
    later(gate)
    Sweeper().go_on_alone()
    assert program.row().status == ("cancelled" if said == "reject" else "completed")
    assert not Effect.objects.filter(run=program.run).exists()
    told = program.client.get(f"/api/gates/{gate.pk}/outcome").json()
    assert told["grants"] == []
    if said == "edit":
        assert told["outcome"]["arguments"]["wire"]["amount"] == "1.00"
    if said == "respond":
        assert told["outcome"]["actions"]["wire"]["response"] == "By card."


def test_its_program_may_end_it_at_once() -> None:
    program = Program()
    decide(posted(program, ask_only=True))
    told = program.claim()
    assert (told["status"], told["next"]) == ("completed", None)


def test_a_gate_whose_only_action_was_answered_for_leaves_no_run_in_the_queue() -> None:
    """It stayed queued until a program claimed it, with nothing to do in it."""
    program = Program()
    gate = posted(program, actions=[{**ACTION, "verdicts": ["approve", "reject", "respond"]}])
    decide(gate, "", verdicts={"wire": {"verdict": "respond", "response": "By card."}})
    later(gate)
    Sweeper().go_on_alone()
    assert program.row().status == "completed"


def test_what_was_allowed_waits_for_its_program() -> None:
    program = Program()
    gate = posted(program)
    decide(gate)
    later(gate)
    Sweeper().go_on_alone()
    assert program.row().status == "queued"
    assert program.claim()["next"]["step"] == "wire"


def test_runs_of_one_conversation_are_listed_together() -> None:
    program = Program()
    runs = []
    for thread in ("chat-7", "chat-7", "chat-8"):
        posted(program, thread=thread)
        runs.append(program.run)
    told = program.client.get("/api/runs", {"thread": "chat-7"}).json()["items"]
    assert [each["id"] for each in told] == [runs[1], runs[0]]
    assert {each["thread"] for each in told} == {"chat-7"}
    reader = signed_in(make_user("Rae Reader", program.team))
    gate = Gate.objects.get(run=runs[0])
    for address in (f"/runs/{runs[0]}/", f"/gates/{gate.pk}/"):
        assert '<a href="/runs/?thread=chat-7">' in reader.get(address).content.decode(), address
    page = reader.get("/runs/", {"thread": "chat-7"}).content.decode()
    assert [f"/runs/{run}/" in page for run in runs] == [True, True, False]
    assert "Runs of thread" in page


def test_a_gate_says_where_people_decide_it(settings: Any) -> None:
    settings.HOLDPOINT_ORIGINS = ["https://holdpoint.example.com", "http://127.0.0.1:8000"]
    program = Program()
    told = program.ok(program.post("gates", {"title": "Wire", "actions": [ACTION]}))
    page = f"https://holdpoint.example.com/gates/{told['gate']}/"
    assert told["gate_url"] == page
    assert program.client.get(f"/api/gates/{told['gate']}").json()["url"] == page
