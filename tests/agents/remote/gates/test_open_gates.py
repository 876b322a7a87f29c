"""Programs elsewhere whose runs go on while their gates are open, and the order in which their calls lock.

A person has the gates, or the effects, already, and takes the run once the call waits: a call that had taken the run
before them would then wait for a person who waits for it, and the database would end one of the two.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from agents.effects import hold_left_behind
from agents.moves import rewind
from agents.moves.cancel import cancel
from agents.remote import absent_programs
from agents.session import gates_beside
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Checkpoint, Run
from tests.agents.remote.outside_program import STEPS, WIRE, Program, closed_before, decide
from tests.factories import ann
from tests.factories.driven_runs import state, trail
from tests.harness.racing_threads import meet_lock

DRAFT, REVIEW, PAY, REPORT = STEPS
LEGAL = {"name": "legal", "kind": "gate", "waits": False, "reads": ["invoice"], "on_reject": "draft"}
NOTE = {"name": "note", "kind": "step", "reads": ["invoice"], "writes": ["log"], "code_hash": "bb" * 32}
PLAN = [DRAFT, {**REVIEW, "waits": False}, LEGAL, NOTE, PAY, REPORT]
ASKED: dict[str, Any] = {"title": "May it be paid?", "actions": [{"id": "ok", "title": "OK", "arguments": {}}]}


@pytest.fixture
def program() -> Program:
    """A program that has asked at both gates, and is to write a note."""
    made = Program()
    made.start(steps=PLAN)
    made.draft()
    told = made.ask()
    assert (told["status"], told["gate"], told["next"]["step"]) == ("running", None, "legal")
    told = made.ok(made.work("gates", step="legal", **ASKED))
    assert (told["status"], told["gate"], told["next"]["step"]) == ("running", None, "note")
    return made


def gate(program: Program, step: str) -> Gate:
    """The newest gate of a step."""
    return Gate.objects.filter(run=program.run, step=step).latest("pk")


def note(program: Program) -> dict[str, Any]:
    return program.ok(program.work("checkpoints", step="note", ops=[{"op": "append", "field": "log", "items": ["n"]}]))


def test_a_program_goes_on_while_its_gates_are_open_and_waits_for_the_one_that_it_needs(program: Program) -> None:
    told = note(program)
    review = gate(program, "review")
    assert (told["status"], told["gate"], told["next"]) == ("waiting", review.pk, None)
    refused = program.post(f"runs/{program.run}/claims", {"worker": "box:81"})
    assert (refused.status_code, refused.json()["gate"]) == (409, review.pk)
    assert program.client.get(f"/api/gates/{review.pk}/outcome").json()["run_status"] == "waiting"
    decide(review, "edit", arguments={"wire": {**WIRE, "amount": "99.00"}})
    outcome = program.client.get(f"/api/gates/{review.pk}/outcome").json()
    assert (outcome["run_status"], len(outcome["grants"])) == ("queued", 1)
    told = program.claim()
    assert (told["next"]["step"], told["state"]["payment"]["amount"]) == ("wire", "99.00")
    program.ok(program.report(program.begin()["id"]))
    told = program.ok(program.work("checkpoints", step="report", ops=[]))
    assert (told["status"], told["gate"]) == ("waiting", gate(program, "legal").pk)
    decide(gate(program, "legal"))
    assert program.claim()["status"] == "completed"


def test_a_decision_while_the_program_works_is_taken_up_with_its_result(program: Program) -> None:
    decide(gate(program, "review"), "edit", arguments={"wire": {**WIRE, "amount": "99.00"}})
    told = note(program)
    assert (told["status"], told["next"]["step"]) == ("running", "wire")
    run = Run.objects.get(pk=program.run)
    assert trail(run)[-2:] == [("step", "note"), ("answered", "review")]
    assert (state(run)["payment"]["amount"], state(run)["log"]) == ("99.00", ["n"])


def test_a_rejection_while_the_program_works_sends_it_back_and_withdraws_the_other_gate(program: Program) -> None:
    legal = gate(program, "legal")
    decide(gate(program, "review"), "reject", comment="No.", then="back", back_to="draft")
    told = note(program)
    assert (told["status"], told["next"]["step"]) == ("running", "draft")
    legal.refresh_from_db()
    assert legal.status == "withdrawn"
    again = program.work("checkpoints", step="note", ops=[])
    assert (again.status_code, again.json()["code"]) == (409, "out_of_turn")


def test_a_run_whose_program_is_gone_ends_where_a_gate_beside_it_was_rejected(program: Program) -> None:
    note(program)
    decide(gate(program, "legal"), "reject", comment="No.", then="stop")
    closed_before(gate(program, "legal"))
    assert program.run in [run for run, _ in absent_programs.waiting()]
    assert absent_programs.go_on(program.run)
    assert Run.objects.get(pk=program.run).status == "cancelled"
    assert not Gate.objects.open().filter(run=program.run).exists()


Call = Callable[[], object]


def saves(program: Program) -> Call:
    """A checkpoint, after which the run waits for its gates."""
    return partial(program.work, "checkpoints", step="note", ops=[])


def claims(program: Program) -> Call:
    """A claim, which takes up a decision."""
    note(program)
    decide(gate(program, "review"))
    return partial(program.post, f"runs/{program.run}/claims", {"worker": "box:82"})


def is_gone(program: Program) -> Call:
    """No call: the server goes on in its place."""
    note(program)
    decide(gate(program, "legal"), "reject", comment="No.", then="stop")
    return partial(absent_programs.go_on, program.run)


@pytest.mark.parametrize("does", [saves, claims, is_gone])
def test_a_call_and_a_person_who_cancels_its_run_do_not_wait_for_each_other(
    program: Program, does: Callable[[Program], Call]
) -> None:
    """One of the two was ended by the database as a deadlock."""
    call = does(program)
    run = Run.objects.get(pk=program.run)
    cancelled = partial(cancel, run, by=SYSTEM, reason="not wanted")
    answer = meet_lock(partial(gates_beside.lock, run.pk), call, cancelled)
    assert answer is False if does is is_gone else answer.status_code == 409
    run.refresh_from_db()
    assert (run.status, gate(program, "legal").status == "open") == ("cancelled", False)


class Final(Program):
    """One whose payment cannot be taken back."""

    def register(self, **more: Any) -> dict[str, Any]:
        final = {"undo": "", "irreversible": True}
        steps = [step | final if step["kind"] == "effect" else step for step in STEPS]
        return super().register(steps=steps, **more)

    def edit(self, step: str, **fields: Any) -> None:
        """A person changes the state that a step led to."""
        at = Checkpoint.objects.filter(run=self.run, step=step).latest("seq").seq
        patch = [{"op": "add", "path": f"/{name}", "value": value} for name, value in fields.items()]
        rewind.edit(self.row(), at=at, patch=patch, by=ann(self.team))


def ends(program: Final) -> Call:
    """The end of a run that has left a payment behind: it settles first."""
    program.edit("draft", payment={"to": "ACME", "amount": "80.00"})
    program.claim()
    return partial(program.work, "endings", status="failed", reason="It broke.")


def takes_over(program: Final) -> Call:
    """A claim by which the run takes over the payment that it did before."""
    program.edit("review", log=["n"])
    return partial(program.post, f"runs/{program.run}/claims", {"worker": "box:82"})


@pytest.mark.parametrize("does", [ends, takes_over])
def test_a_call_locks_the_effects_that_it_comes_to_before_the_run(does: Callable[[Final], Call]) -> None:
    """A plain run's effects were locked first only where it settled before: the database ended one of the two."""
    program = Final()
    program.to_effect()
    program.ok(program.report(program.begin()["id"]))
    call = does(program)
    cancelled = partial(cancel, program.row(), by=SYSTEM, reason="not wanted")
    answer = meet_lock(partial(hold_left_behind.lock, program.row()), call, cancelled)
    assert answer.status_code == (201 if does is takes_over else 409)
    row = program.row()
    assert "cancelled" in (row.status, row.ending)
