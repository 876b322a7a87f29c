"""A run's effects over the API."""

from __future__ import annotations

from agents.models import Effect
from approvals.models import Gate, Grant
from tests.agents.moves.conftest import _only_these_agents, ledger
from tests.agents.pages.moves.sent_orders import booked, member
from tests.agents.remote.outside_program import Program, decide
from tests.factories import MEMBER, ann, make_team
from tests.factories.tokens import bearing, make_token

from .sent_requests import ask, walk
from .test_orders import post

__all__ = ["_only_these_agents", "ledger"]


def allowed() -> Program:
    """A program whose payment was approved, and which has claimed its run again."""
    program = Program(team=make_team(may=("approvals.decide_gate", "checkpoints.rewind_run", *MEMBER)))
    decide(program.to_gate())
    program.claim()
    return program


def test_a_program_reads_what_it_has_begun_and_what_became_of_it() -> None:
    program = allowed()
    address = f"/api/runs/{program.run}/effects"
    assert program.ok(program.client.get(address)) == {"items": [], "next": None}
    begun = program.begin()
    [told] = program.ok(program.client.get(address))["items"]
    grant = Grant.objects.get(outcome__gate__run=program.run)
    row = Effect.objects.get(pk=begun["id"])
    assert told == {
        "id": begun["id"], "step": "wire", "status": "intended", "unsettled": False, "key": begun["key"],
        "grant": grant.pk, "action": "wire", "undoes": None, "taken_from": None, "irreversible": False, "attempts": 1,
        "checkpoints": [], "error": "", "intended_at": row.intended_at.isoformat().replace("+00:00", "Z"),
        "settled_at": None,
    }  # fmt: skip
    done = program.ok(program.report(begun["id"]))
    [told] = program.ok(program.client.get(address))["items"]
    assert (told["status"], told["checkpoints"]) == ("done", [done["seq"]])
    assert told["settled_at"] > told["intended_at"]


def test_what_was_left_behind_is_told_until_it_is_taken_back() -> None:
    program = allowed()
    wired = program.begin()["id"]
    program.ok(program.report(wired))
    person = bearing(make_token(ann(program.team))[1])
    address = f"/api/runs/{program.run}"
    assert person.post(f"{address}/rewinds", {"to": 1}, content_type="application/json").status_code == 200
    [told] = person.get(f"{address}/effects").json()["items"]
    assert (told["status"], told["unsettled"]) == ("done", True)
    program.claim()
    program.draft(amount="80.00")
    decide(Gate.objects.get(pk=program.ask()["gate"]))
    program.claim()
    undo = program.ok(program.work("effects", undoes=wired))["next"]["effect"]["id"]
    program.ok(program.report(undo, writes={}))
    first, second = person.get(f"{address}/effects").json()["items"]
    assert (first["id"], first["status"], first["unsettled"]) == (wired, "undone", False)
    assert (second["id"], second["undoes"], second["status"], second["grant"]) == (undo, wired, "done", None)


def test_pages_of_effects_follow_each_other_in_the_order_in_which_they_were_begun(ledger: str) -> None:
    run = booked(ledger)
    assert post(member(run), run, "rewinds", {"to": 1, "confirm": True}).status_code == 200
    mine = list(Effect.objects.filter(run=run).order_by("pk").values_list("pk", flat=True))
    assert len(mine) > 1
    walked = walk(ann(run.team), f"/api/runs/{run.pk}/effects", limit=1)
    assert [each["id"] for each in walked] == mine
    assert ask(ann(run.team), f"/api/runs/{run.pk}/effects", limit=len(mine))["next"] is None
