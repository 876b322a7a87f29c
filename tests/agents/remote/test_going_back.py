"""Rewinds, crashes and late words: what a program has done is kept, undone or asked about, as anybody's is."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Effect
from agents.moves import cancel
from agents.moves import rewind as rewinds
from approvals.models import Gate
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.store import load
from tests.agents.remote.outside_program import ACTION, STEPS, WIRE, Program, decide
from tests.factories import make_user


def paid(program: Program) -> dict[str, Any]:
    """Bring a run to where its payment is done; what comes next."""
    program.to_effect()
    effect = program.begin()
    return program.ok(program.report(effect["id"]))


def send_back(program: Program, to: int) -> None:
    """A person sends the run back."""
    run = Run.objects.select_related("plan", "team").get(pk=program.run)
    rewinds.rewind(run, to=to, by=make_user("Mo Mover", program.team), confirm=True)


def seq_of(program: Program, step: str) -> int:
    return Checkpoint.objects.filter(run=program.run, step=step).order_by("seq").values_list("seq", flat=True)[0]


def test_after_a_rewind_the_program_is_fenced_and_undoes_what_no_step_takes_over() -> None:
    program = Program()
    paid(program)
    stale = program.token
    send_back(program, 1)
    answer = program.work("checkpoints", step="report", ops=[])
    assert (answer.status_code, answer.json()["code"]) == (409, "stale_token")
    turn = program.claim()
    assert program.token > stale
    assert (turn["next"]["kind"], turn["next"]["step"]) == ("step", "draft")  # the step it is sent to always runs
    program.draft(amount="80.00")
    gate = Gate.objects.get(pk=program.ask()["gate"])
    decide(gate)
    turn = program.claim()
    done = Effect.objects.get(run=program.run, undoes__isnull=True)
    assert (turn["next"]["kind"], turn["next"]["undoes"]) == (
        "undo", {"id": done.pk, "key": done.key, "undo": "cancel_wire"},
    )  # fmt: skip
    begun = program.ok(program.work("effects", undoes=done.pk))["next"]["effect"]
    assert begun["key"] != done.key
    after = program.ok(program.work(f"effects/{begun['id']}/results", status="done"))
    assert (after["next"]["kind"], after["next"]["step"]) == ("effect", "wire")
    done.refresh_from_db()
    assert done.status == "undone"
    effect = program.begin()
    assert effect["key"] != done.key
    assert program.ok(program.report(effect["id"], writes={"receipt": {"id": "tx_2"}}))["next"]["step"] == "report"
    assert load(program.row()).state["payment"]["amount"] == "80.00"


def test_what_gives_the_same_again_stands_and_nothing_is_paid_twice() -> None:
    program = Program()
    paid(program)
    send_back(program, 1)
    program.claim()
    turn = program.draft()
    assert (turn["next"]["kind"], turn["next"]["step"]) == ("gate", "review")
    asked = program.ask()
    assert (asked["gate"], asked["next"]["kind"], asked["next"]["step"]) == (None, "step", "report")
    assert Effect.objects.filter(run=program.run).count() == 1
    kinds = Checkpoint.objects.filter(run=program.run).order_by("seq").values_list("kind", "step")
    assert list(kinds)[-2:] == [("reused", "review"), ("reused", "wire")]


def test_a_program_that_died_in_an_effect_leaves_it_to_people() -> None:
    program = Program()
    program.to_effect()
    effect, stale = program.begin(), program.token
    program.lapse()
    told = program.claim()
    assert (told["status"], told["next"]) == ("waiting", None)
    gate = Gate.objects.get(pk=told["gate"])
    assert (gate.kind, Effect.objects.get(pk=effect["id"]).status) == ("recovery", "unknown")
    # It was only slow, and says so: that answers whoever was asked.
    program.token = stale
    late = program.report(effect["id"], writes={"receipt": {"id": "tx_late"}})
    assert late.status_code == 201
    assert Gate.objects.get(pk=gate.pk).status == "withdrawn"
    turn = program.claim()
    assert (turn["next"]["step"], turn["state"]["receipt"]) == ("report", {"id": "tx_late"})


def test_an_effect_that_did_not_go_well_is_asked_about() -> None:
    for status in ("failed", "unknown"):
        program = Program()
        program.to_effect()
        effect = program.begin()
        told = program.ok(program.work(f"effects/{effect['id']}/results", status=status, error="503 from the bank"))
        gate = Gate.objects.get(pk=told["gate"])
        assert (told["status"], gate.kind) == ("waiting", "recovery")
        assert "503 from the bank" in gate.asked.title + gate.asked.summary + str(gate.asked.question)


def test_a_step_that_failed_is_due_again_and_then_asked_about() -> None:
    program = Program()
    steps = [{**step, "retry": 1, "backoff": 0} if step["name"] == "draft" else step for step in STEPS]
    program.start(steps=steps)
    first = program.ok(program.work("failures", step="draft", error="No line.", retry=True))
    assert (first["status"], first["gate"]) == ("queued", None)
    program.claim()
    second = program.ok(program.work("failures", step="draft", error="No line.", retry=True))
    assert (second["status"], Gate.objects.get(pk=second["gate"]).kind) == ("waiting", "recovery")


def test_what_was_approved_is_what_runs() -> None:
    """Somebody edits what the effect reads after the gate: the grant does not hold for that, and people are asked."""
    program = Program()
    decide(program.to_gate())
    run = Run.objects.select_related("plan", "team").get(pk=program.run)
    program.claim()
    run.refresh_from_db()
    patch = [{"op": "replace", "path": "/payment/amount", "value": "9999.00"}]
    rewinds.edit(run, at=seq_of(program, "review"), patch=patch, by=make_user("Mo Mover", program.team))
    turn = program.claim()
    assert (turn["next"]["kind"], turn["next"]["step"]) == ("gate", "review")
    assert not Effect.objects.filter(run=program.run).exists()
    asked = Gate.objects.get(pk=program.ask()["gate"])
    assert asked.asked.actions[0].arguments == {**WIRE, "amount": "9999.00"}
    assert asked.asked.reopened is not None


def settling(program: Program, how: str) -> Effect:
    """Bring a run to where its payment is to be taken back before anything else; that payment."""
    paid(program)
    send_back(program, 1)
    program.claim()
    mover, run = make_user("Mo Mover", program.team), program.row()
    cancel.cancel(run, by=mover, reason="Not needed.") if how == "cancel" else rewinds.settle_now(run, by=mover)
    assert program.claim()["next"]["kind"] == "undo"
    return Effect.objects.get(run=program.run, undoes__isnull=True)


@pytest.mark.parametrize("how", ["cancel", "settle"])
def test_while_something_is_to_be_taken_back_nothing_else_is_done(how: str) -> None:
    """A gate that was asked then was answered with a server error, and a cancelled run took checkpoints and ends."""
    program = Program()
    left = settling(program, how)
    before = (program.row().seq, Event.objects.filter(run_id=program.run).count())
    bodies: dict[str, dict[str, Any]] = {
        "checkpoints": {"step": "draft", "ops": []},
        "gates": {"step": "draft", "title": "Wire", "actions": [ACTION]},
        "effects": {"step": "wire"},
        "failures": {"step": "draft", "error": "No line."},
        "endings": {"status": "failed"},
    }
    for what, body in bodies.items():
        answer = program.work(what, **body)
        assert (answer.status_code, answer.json()["code"]) == (409, "out_of_turn"), what
        assert f"`undoes`: {left.pk} (wire)" in answer.json()["detail"]
    assert (program.row().seq, Event.objects.filter(run_id=program.run).count()) == before
    another = program.work("effects", undoes=left.pk + 1000)  # it was answered with 201, as if it had been begun
    assert (another.status_code, another.json()["code"]) == (409, "out_of_turn")
    assert not Effect.objects.filter(run=program.run, undoes__isnull=False).exists()
    begun = program.ok(program.work("effects", undoes=left.pk))["next"]["effect"]
    writing = program.work(f"effects/{begun['id']}/results", status="done", writes={"receipt": {}})
    assert (writing.status_code, writing.json()["errors"][0]["parameter"]) == (422, "/writes")
    if how == "cancel":  # a second time it fenced the program in the middle of taking the payment back
        assert program.client.get(f"/api/runs/{program.run}").json()["ending"] == "cancelled"
        assert cancel.cancel(program.row(), by=make_user("Mo Mover", program.team), reason="Once more.")
    told = program.ok(program.work(f"effects/{begun['id']}/results", status="done"))
    assert told["reason"] == ("Not needed." if how == "cancel" else "")
    step = told["next"] and told["next"]["step"]
    assert (told["status"], step) == (("cancelled", None) if how == "cancel" else ("running", "draft"))
