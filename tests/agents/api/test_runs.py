"""Runs over the API, their checkpoints byte by byte with their names, what they did outside, and agents."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest
from django.test import Client

from agents.api.agents import StepBody
from agents.definition.decorators import EffectOptions, GateOptions, StepOptions, default_of
from agents.models import Effect
from approvals.models import Gate, Grant
from checkpoints import actors, store
from checkpoints.models import Checkpoint, Hold, Run
from checkpoints.values import patch
from checkpoints.values.canonical_json import encode_canonical
from tests.agents.api.sent_requests import EXACT, ask, make_exact_run, save, walk
from tests.agents.api.test_doors import refusal
from tests.agents.api.test_orders import post
from tests.agents.pages.moves.sent_orders import member
from tests.agents.remote.outside_program import Program, decide
from tests.factories import (
    MEMBER,
    READER,
    ann,
    make_gate,
    make_plan,
    make_run,
    make_spec,
    make_team,
    make_user,
    unique,
)
from tests.factories.tokens import bearing, make_token
from tests.harness.signed_in_clients import signed_in


def test_pages_of_runs_follow_each_other_without_a_gap_or_a_repeat_while_runs_are_added() -> None:
    reader = ann(team := make_team())
    made = [make_run(team=team).pk for _ in range(4)]
    assert [run["id"] for run in walk(reader, "/api/runs", limit=2)] == made[::-1]
    assert ask(reader, "/api/runs", limit=4)["next"] is None, "a last page that is full"
    first = ask(reader, "/api/runs", limit=3)
    make_run(team=team)
    rest = [run["id"] for run in ask(reader, "/api/runs", limit=200, cursor=first["next"])["items"]]
    assert [run["id"] for run in first["items"]] + rest == made[::-1]


def test_a_run_says_where_it_stands_and_can_be_asked_for_by_that_by_those_who_view_runs() -> None:
    team = make_team(may=READER)
    starter = make_user("Bob Lindqvist", team)
    gate, queued, cancelled = make_gate(team=team, started_by=starter), make_run(team=team), make_run(team=team)
    cancelled.cancel(by=actors.SYSTEM, reason="Not needed")
    listed = {
        status: [run["id"] for run in walk(ann(team), "/api/runs", limit=1, status=status)]
        for status in ("queued", "waiting", "cancelled", "completed")
    }
    assert listed == {"queued": [queued.pk], "waiting": [gate.run_id], "cancelled": [cancelled.pk], "completed": []}
    found = ask(ann(team), f"/api/runs/{gate.run_id}")
    assert found == ask(ann(team), "/api/runs")["items"][2]
    assert (found["status"], found["gates"], found["started_by"]) == ("waiting", [gate.pk], "Bob Lindqvist")
    assert (found["team"], found["agent"], found["seq"]) == (team.name, gate.run.plan.agent, 1)
    assert found["created_at"] == gate.run.created_at.isoformat().replace("+00:00", "Z")
    make_run(team=(blind := make_team(may=())))
    assert ask(ann(blind), "/api/runs")["items"] == []


def test_a_state_is_sent_as_the_bytes_that_its_digest_covers() -> None:
    run = make_exact_run()
    answer = signed_in(ann(run.team)).get(f"/api/runs/{run.pk}/checkpoints/1")
    assert answer.content.endswith(b',"state":' + encode_canonical(store.load(run).state) + b"}")
    for text in (b'"count":1,', b'"share":1.0,', b'"huge":18446744073709551617,', b'"tiny":-0.0', b"[1,1.0,1844"):
        assert text in answer.content


def test_a_value_as_deep_as_the_store_takes_is_read_back() -> None:
    deep: Any = 2**64
    for _ in range(129):
        deep = [deep]
    run = make_run(state={"order": {"deep": deep[0]}, "feedback": [deep]})
    run = save(run, order={}, feedback=[])
    found = ask(ann(run.team), f"/api/runs/{run.pk}/checkpoints/1")["state"]
    assert found == {"order": {"deep": deep[0]}, "feedback": [deep]}
    path = f"/api/runs/{run.pk}/checkpoints/2/diff"
    assert patch.apply(ask(ann(run.team), path, to=1), {"order": {}, "feedback": []}) == found


def test_a_header_says_how_a_checkpoint_came_to_be_and_what_it_follows() -> None:
    run = save(make_run(), feedback=[{"text": "Again"}])
    path = f"/api/runs/{run.pk}/checkpoints"
    listed = walk(ann(run.team), path, limit=1)
    assert [(each["seq"], "state" in each) for each in listed] == [(2, False), (1, False)]
    found, first = (ask(ann(run.team), f"{path}/{seq}") for seq in (2, 1))
    snapshot = store.load(run)
    assert (found["kind"], found["step"], found["next_step"], found["seq"]) == ("step", "propose", "review", 2)
    assert (found["parent"], found["parent_digest"], found["held"]) == (first["id"], first["digest"], {})
    assert (found["digest"], found["state_digest"]) == (snapshot.digest.hex(), snapshot.state_digest.hex())
    assert (first["kind"], first["parent"], first["parent_digest"]) == ("input", None, None)


def test_a_difference_is_the_patch_from_one_state_to_the_other_exact_to_the_type() -> None:
    run = save(make_exact_run(), order={**EXACT, "count": 1.0, "huge": 2**64 + 2}, feedback=[1, 1, 2**64, "new"])
    answer = signed_in(ann(run.team)).get(f"/api/runs/{run.pk}/checkpoints/1/diff", {"to": 2})
    assert answer["Content-Type"] == "application/json-patch+json"
    first, second = (store.load_checkpoint(row.id).state for row in Checkpoint.objects.filter(run=run).order_by("seq"))
    found = json.loads(answer.content)
    assert sorted(each["path"] for each in found) == ["/feedback/1", "/feedback/3", "/order/count", "/order/huge"]
    assert encode_canonical(patch.apply(found, first)) == encode_canonical(second)
    back = ask(ann(run.team), f"/api/runs/{run.pk}/checkpoints/2/diff", to=1)
    assert encode_canonical(patch.apply(back, second)) == encode_canonical(first)
    assert ask(ann(run.team), f"/api/runs/{run.pk}/checkpoints/2/diff", to=2) == []


def test_a_checkpoint_of_another_run_is_not_there_and_one_that_does_not_verify_is_not_shown() -> None:
    team = make_team()
    run, other = make_run(team=team), save(make_run(team=team), mailed=True)
    reader, path = signed_in(ann(team)), f"/api/runs/{other.pk}"
    assert reader.get(f"{path}/checkpoints/2").json()["seq"] == 2
    told = refusal(reader.get(f"/api/runs/{run.pk}/checkpoints/2"), 404)
    assert f"GET /api/runs/{run.pk}/checkpoints lists" in told["detail"]
    refusal(reader.get(f"/api/runs/{run.pk}/checkpoints/1/diff", {"to": 2}), 404)
    assert reader.get(f"{path}/verification").json() == {"ok": True, "findings": []}
    Checkpoint.objects.filter(run=other, seq=2).update(state_digest=b"\0" * 32)
    assert "do not match their digest" in refusal(reader.get(f"{path}/checkpoints/2"), 409)["detail"]
    refusal(reader.get(f"{path}/checkpoints/1/diff", {"to": 2}), 409)
    assert reader.get(f"{path}/checkpoints/1").status_code == 200
    told = reader.get(f"{path}/verification").json()
    assert told["ok"] is False
    assert any("2" in each["subject"] and "match its digest" in each["reason"] for each in told["findings"])


def name(client: Client, run: Run, seq: int = 1, noun: str = "names", body: Any = None, **headers: str) -> Any:
    return post(client, run, f"checkpoints/{seq}/{noun}", body, **headers)


def names(run: Run) -> list[str]:
    return list(Hold.objects.standing().filter(run=run, kind="name").values_list("reason", flat=True))


def test_a_checkpoint_is_named_once_for_a_key_and_the_name_removed_again() -> None:
    run = make_run()
    client = member(run)
    for _ in range(2):
        told = name(client, run, 1, "names", {"name": "Before paying"}, **{"Idempotency-Key": "one"})
        assert (told.status_code, told.json()) == (201, {"run": run.pk, "seq": 1, "name": "Before paying"})
    assert Hold.objects.filter(run=run, kind="name").count() == 1
    assert client.get(f"/api/runs/{run.pk}/checkpoints/1").json()["name"] == "Before paying"
    assert name(client, run).json()["name"] == "Checkpoint 1"
    assert names(run) == ["Checkpoint 1"]
    for _ in range(2):
        gone = name(client, run, noun="names/removals")
        assert (gone.status_code, gone.json()["name"], names(run)) == (200, "", [])
    for seq, body, status in ((1, {"name": "x" * 101}, 422), (9, {}, 404), (1, {"nam": ""}, 422)):
        refusal(name(client, run, seq, body=body), status)
    assert names(run) == []


def allowed() -> Program:
    """A program whose payment was approved, and which has claimed its run again."""
    program = Program(team=make_team(may=("approvals.decide_gate", "checkpoints.rewind_run", *MEMBER)))
    decide(program.to_gate())
    program.claim()
    return program


def test_a_program_reads_what_it_has_begun_and_what_became_of_it_until_it_is_taken_back() -> None:
    program = allowed()
    address = f"/api/runs/{program.run}"
    assert program.ok(program.client.get(f"{address}/effects")) == {"items": [], "next": None}
    begun = program.begin()
    [told] = program.ok(program.client.get(f"{address}/effects"))["items"]
    grant = Grant.objects.get(outcome__gate__run=program.run)
    row = Effect.objects.get(pk=begun["id"])
    assert told == {
        "id": begun["id"], "step": "wire", "status": "intended", "unsettled": False, "key": begun["key"],
        "grant": grant.pk, "action": "wire", "undoes": None, "taken_from": None, "irreversible": False, "attempts": 1,
        "checkpoints": [], "error": "", "intended_at": row.intended_at.isoformat().replace("+00:00", "Z"),
        "settled_at": None,
    }  # fmt: skip
    wired = begun["id"]
    done = program.ok(program.report(wired))
    [told] = program.ok(program.client.get(f"{address}/effects"))["items"]
    assert (told["status"], told["checkpoints"]) == ("done", [done["seq"]])
    assert told["settled_at"] > told["intended_at"]
    person = bearing(make_token(ann(program.team))[1])
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
    assert walk(ann(program.team), f"{address}/effects", limit=1) == [first, second]


def test_an_agent_is_told_with_its_versions_its_steps_and_the_schema_of_its_state() -> None:
    team, agent = make_team(may=READER), unique("robo")
    old, new = (make_plan(make_spec(agent, version=version)) for version in ("1", "2"))
    for plan in (old, new):
        make_run(team=team, plan=plan)
    [summary] = ask(ann(team), "/api/agents")["items"]
    assert (summary["name"], summary["version"], summary["versions"]) == (agent, "2", ["2", "1"])
    assert summary["deployed"] is False
    answer = signed_in(ann(team)).get(f"/api/agents/{agent}", {"version": "1"})
    told, spec = answer.json(), make_spec(agent, version="1")
    assert (told["version"], told["versions"]) == ("1", ["2", "1"])
    assert b'"state_schema":' + encode_canonical(spec.state_schema) + b"}" in answer.content
    assert [(step["name"], step["kind"]) for step in told["steps"]] == [(one.name, one.kind) for one in spec.steps]
    pay = next(step for step in told["steps"] if step["name"] == "pay")
    assert (pay["undo"], pay["guarded"]) == ("cancel_payment", True)
    assert ask(ann(team), f"/api/agents/{agent}")["version"] == "2"


def test_a_version_that_there_is_not_or_of_which_only_others_have_runs_is_not_there() -> None:
    team, agent = make_team(may=READER), unique("robo")
    mine, theirs = (make_plan(make_spec(agent, version=version)) for version in ("1", "2"))
    make_run(team=make_team(), plan=theirs)
    reader = signed_in(ann(team))
    refusal(reader.get(f"/api/agents/{agent}"), 404)
    make_run(team=team, plan=mine)
    told = ask(ann(team), f"/api/agents/{agent}")
    assert (told["version"], told["versions"]) == ("1", ["1"])
    for version in ("2", "99"):
        refused = refusal(reader.get(f"/api/agents/{agent}", {"version": version}), 404)
        assert "GET /api/agents lists" in refused["detail"]


@pytest.mark.parametrize("may", [MEMBER, READER])
def test_whoever_may_start_runs_knows_what_is_deployed_and_nobody_else(may: tuple[str, ...]) -> None:
    reader = make_user("Bob Lindqvist", make_team(may=may))
    deployed = {each["name"] for each in ask(reader, "/api/agents")["items"] if each["deployed"]}
    assert ("refunds" in deployed) == (may == MEMBER)
    answer = signed_in(reader).get("/api/agents/refunds")
    assert answer.status_code == (200 if may == MEMBER else 404)


def test_a_posted_step_has_the_defaults_of_a_declared_one() -> None:
    """A gate's policy may be left to the token, and feedback is read from the source where there is one."""
    declared = {each.name for kind in (StepOptions, EffectOptions, GateOptions) for each in fields(kind)}
    shared = declared & StepBody.model_fields.keys()
    assert len(shared) > 15
    apart = {name for name in shared if StepBody.model_fields[name].default != default_of(name)}
    assert apart == {"policy", "feedback"}
