"""The approval of a question is handed out to one call, whichever process asks for it first.

Nothing recorded that a program had been told, so the same approval was an answer to each call that was alike.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from agents.api.protocol import idempotency_keys
from approvals.models import Gate
from checkpoints.models import Event
from checkpoints.postgresql.sql import run_sql
from tests.agents.api.test_doors import refusal
from tests.agents.remote.outside_program import Program, decide
from tests.factories import make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.racing_threads import race

from .test_asking_only import ACTION, posted


def take(program: Program, gate: Gate, to: str = "call-1", **more: Any) -> Any:
    return program.post(f"gates/{gate.pk}/handouts", {"to": to, **more})


def approved(program: Program) -> Gate:
    """A question that somebody approved."""
    gate = posted(program, ask_only=True)
    decide(gate)
    return gate


def test_it_is_handed_out_once_and_read_again_under_the_same_name() -> None:
    program = Program()
    gate = approved(program)
    first, again, other = (program.ok(take(program, gate, to)) for to in ("call-1", "call-1", "call-2"))
    assert [(each["first"], each["yours"]) for each in (first, again, other)] == [
        (True, True), (False, True), (False, False),
    ]  # fmt: skip
    assert first["at"] == again["at"] == other["at"]
    event = Event.objects.get(kind="gate.handed_out", subject=gate.subject)
    assert event.actor == f"agent:{program.agent}"


def test_of_many_at_once_one_has_it() -> None:
    program = Program()
    gate = approved(program)
    found = race([partial(take, program, gate, f"call-{at}") for at in range(4)])
    assert sorted(program.ok(each)["first"] for each in found) == [False, False, False, True]


def test_its_key_is_free_for_the_next_question_and_only_while_it_is_this_gates() -> None:
    program = Program()
    question = {"title": "Wire 120.00?", "actions": [ACTION], "ask_only": True}

    def asked() -> int:
        return int(program.ok(program.post("gates", question, key="wire"))["gate"])

    first = asked()
    assert asked() == first
    decide(Gate.objects.get(pk=first))
    program.ok(take(program, Gate.objects.get(pk=first), frees="wire"))
    second = asked()
    assert second != first
    program.ok(take(program, Gate.objects.get(pk=first), "call-2", frees="wire"))
    assert asked() == second, "the key is another gate's by now"


def test_a_key_that_is_freed_while_a_question_meets_it_is_claimed_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hand-out of another connection came between the INSERT that met the key and the look at it: a 500."""
    program = Program()
    question = {"title": "Wire 120.00?", "actions": [ACTION], "ask_only": True}
    first = Gate.objects.get(pk=program.ok(program.post("gates", question, key="wire"))["gate"])
    decide(first)
    claims: list[Any] = []

    def run_then_free(sql: str, values: Any) -> Any:
        rows = run_sql(sql, values)
        if sql == idempotency_keys._CLAIM and values[1] == "wire":
            claims.append(rows)
            if len(claims) == 1:
                [freed] = race([partial(take, program, first, frees="wire")])
                assert program.ok(freed)["first"]
        return rows

    monkeypatch.setattr(idempotency_keys, "run_sql", run_then_free)
    second = program.ok(program.post("gates", question, key="wire"))["gate"]
    assert second != first.pk
    assert [bool(rows) for rows in claims] == [False, True]
    assert program.ok(program.post("gates", question, key="wire"))["gate"] == second


def test_what_nobody_approved_and_what_a_run_performs_is_not_handed_out() -> None:
    program = Program()
    open_one, refused = posted(program, ask_only=True), posted(program, ask_only=True)
    decide(refused, "reject")
    performed = posted(program)
    decide(performed)
    assert "no approval" in refusal(take(program, open_one), 409)["detail"]
    assert "no approval" in refusal(take(program, refused), 409)["detail"]
    assert "done by its run" in refusal(take(program, performed), 409)["detail"]
    assert not Event.objects.filter(kind="gate.handed_out", team_id=program.team.pk).exists()


def test_whoever_does_not_see_the_gate_takes_nothing() -> None:
    gate = approved(Program())
    refusal(take(Program(), gate), 404)
    _, sent = make_token(make_user("Rae Reader", gate.team), team=gate.team, agent="another")
    refusal(bearing(sent).post(f"/api/gates/{gate.pk}/handouts", {"to": "x"}, content_type="application/json"), 404)
    assert not Event.objects.filter(kind="gate.handed_out", subject=gate.subject).exists()
