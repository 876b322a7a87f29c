"""What does not fit is refused with what to do about it, and leaves nothing behind."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from agents.models import Answer, Effect
from approvals.models import Gate
from checkpoints.models import Checkpoint, Event, Plan, Run
from tests.agents.api.test_doors import refusal
from tests.factories import MEMBER, make_run, make_team

from .outside_program import ACTION, SCHEMA, STEPS, WIRE, Program, decide


def traces(program: Program) -> tuple[int, ...]:
    """How many rows there are of all that a call could leave behind."""
    mine = {"run": program.run}
    return (
        Run.objects.filter(team=program.team).count(),
        Checkpoint.objects.filter(run_id=program.run).count(),
        Gate.objects.filter(**mine).count(),
        Effect.objects.filter(**mine).count(),
        Event.objects.filter(run_id=program.run).count(),
        Plan.objects.filter(agent=program.agent).count(),
        Answer.objects.count(),
    )


def refused(program: Program, answer: Any, status: int, *, code: str = "", before: tuple[int, ...]) -> dict[str, Any]:
    """The problem of an answer, which left nothing behind."""
    told = refusal(answer, status)
    assert told["code"] == code
    assert traces(program) == before
    return told


@pytest.fixture
def started() -> Program:
    """A program that has begun a run."""
    program = Program()
    program.start()
    return program


class TestStarting:
    """Agents, versions and inputs."""

    def test_a_version_that_nobody_registered(self) -> None:
        program = Program()
        program.register()
        before = traces(program)
        answer = program.post("runs", {"agent": program.agent, "version": "99", "input": {"invoice": {}}})
        told = refused(program, answer, 422, code="invalid", before=before)
        assert f"POST /api/agents/{program.agent}/versions" in told["detail"]

    def test_a_format_of_plans_that_nobody_knows(self) -> None:
        program = Program()
        body = {"format": 2, "version": "1", "state_schema": SCHEMA, "steps": STEPS}
        answer = program.post(f"agents/{program.agent}/versions", body)
        told = refused(program, answer, 422, code="invalid", before=traces(program))
        assert told["errors"] == [{"parameter": "/format", "detail": "Input should be 1"}]

    @pytest.mark.parametrize(
        ("spoilt", "place", "said"),
        [
            ({"steps": []}, "/steps", "at least 1"),
            ({"steps": [STEPS[0], STEPS[0]]}, "/steps/1/name", "twice"),
            ({"steps": [{"name": "a", "reads": ["nothing"]}]}, "/steps/0/reads", "which is not a field"),
            ({"steps": [{"name": "a", "responds": "nothing"}]}, "/steps/0/responds", "which is not a field"),
            ({"steps": [{"name": "a", "action": "payment"}]}, "/steps/0/action", "let it read that field"),
            (
                {"steps": [{"name": "a", "kind": "gate", "feedback": "nothing"}]},
                "/steps/0/feedback",
                "is not in the state's schema",
            ),
            ({"steps": [{"name": "a", "kind": "effect", "writes": ["receipt"]}]}, "/steps/0", "undo"),
            ({"steps": STEPS[:1] + STEPS[2:]}, "/steps", "No gate allows"),
            ({"state_schema": {"type": "array"}}, "/state_schema", "an object"),
            ({"state_schema": {"type": 7}}, "/state_schema", "not valid"),
            ({"state_schema": {"properties": {"_x": {}}}}, "/state_schema/properties/_x", "a field's name"),
            ({"state_schema": {"properties": {"model_fields": {}}}}, "/state_schema/properties/model_fields", "begin"),
            ({"version": ""}, "/version", "match"),
            ({"steps": [{"name": "a", "retries": 3}]}, "/steps/0/retries", "not permitted"),
            (
                {"state_schema": {"$schema": "https://json-schema.org/draft/2099-01/schema"}},
                "/state_schema",
                "no version",
            ),
        ],
    )
    def test_a_plan_that_cannot_work(self, spoilt: dict[str, Any], place: str, said: str) -> None:
        program = Program()
        body = {"version": "1", "state_schema": SCHEMA, "steps": STEPS, **spoilt}
        answer = program.post(f"agents/{program.agent}/versions", body)
        told = refusal(answer, 422)
        assert any(each["parameter"] == place and said in each["detail"] for each in told["errors"]), told
        assert not Plan.objects.filter(agent=program.agent).exists()

    def test_a_version_whose_plan_changed_under_its_runs(self, started: Program) -> None:
        before = traces(started)
        body = {"version": "1", "state_schema": SCHEMA, "steps": [STEPS[0]]}
        answer = started.post(f"agents/{started.agent}/versions", body)
        assert refused(started, answer, 422, code="invalid", before=before)["errors"][0]["parameter"] == "/version"

    @pytest.mark.parametrize(
        ("input", "place"),
        [({}, "/invoice"), ({"invoice": 7}, "/invoice"), ({"invoice": {}, "other": 1}, "/other"),
         ({"invoice": {}, "payment": {"to": "ACME", "amount": "1e9"}}, "/payment/amount")],
    )  # fmt: skip
    def test_an_input_that_does_not_fit(self, input: dict[str, Any], place: str) -> None:
        program = Program()
        program.register()
        before = traces(program)
        told = refused(program, program.post("runs", {"input": input}), 422, code="invalid", before=before)
        assert place in [each["parameter"] for each in told["errors"]]

    def test_an_agent_that_lives_here(self) -> None:
        program = Program(agent="refunds")
        told = refusal(
            program.post("agents/refunds/versions", {"version": "1", "state_schema": SCHEMA, "steps": STEPS}), 422
        )
        assert "is an agent of this server" in told["detail"]

    def test_another_agent_than_the_tokens(self) -> None:
        program = Program()
        for answer in (
            program.post("runs", {"agent": "another", "input": {}}),
            program.post("agents/another/versions", {"version": "1", "state_schema": SCHEMA, "steps": STEPS}),
        ):
            assert "This token is for the agent" in refusal(answer, 403)["detail"]


class TestClaiming:
    """Who may write a run."""

    def test_a_run_that_somebody_has(self, started: Program) -> None:
        before = traces(started)
        answer = started.post(f"runs/{started.run}/claims", {})
        told = refused(started, answer, 409, code="not_claimable", before=before)
        assert "box:81 has the run" in told["detail"]
        assert datetime.fromisoformat(told["lease_until"]) == started.row().lease_until

    def test_a_run_that_waits_for_people(self) -> None:
        program = Program()
        gate = program.to_gate()
        before = traces(program)
        answer = program.post(f"runs/{program.run}/claims", {})
        told = refused(program, answer, 409, code="not_claimable", before=before)
        assert f"/api/gates/{gate.pk}/outcome?wait=" in told["detail"]
        assert told["gate"] == gate.pk
        assert (
            refused(program, program.work("checkpoints", step="draft", ops=[]), 409, code="stale_token", before=before)[
                "gate"
            ]
            == gate.pk
        )

    def test_a_run_of_an_agent_that_lives_here(self) -> None:
        team = make_team(may=MEMBER)
        run = make_run(team=team)
        program = Program(team=team, agent=run.plan.agent, run=run.pk)
        answer = program.post(f"runs/{run.pk}/claims", {})
        assert (
            "runs on this server"
            in refused(program, answer, 409, code="not_external", before=traces(program))["detail"]
        )

    @pytest.mark.parametrize(
        "what", ["heartbeats", "checkpoints", "gates", "effects", "failures", "releases", "endings"]
    )
    def test_a_stale_token(self, started: Program, what: str) -> None:
        bodies: dict[str, dict[str, Any]] = {
            "checkpoints": {"step": "draft", "ops": []}, "gates": {"step": "review", "title": "x", "actions": [ACTION]},
            "effects": {"step": "wire"}, "failures": {"step": "draft", "error": "x"}, "endings": {"status": "failed"},
        }  # fmt: skip
        before = traces(started)
        started.token -= 1
        if started.token < 1:
            started.token = 99
        told = refused(started, started.work(what, **bodies.get(what, {})), 409, code="stale_token", before=before)
        assert "Claim the run" in told["detail"]

    def test_a_second_end(self, started: Program) -> None:
        assert started.ok(started.work("endings", status="failed", reason="It broke."))["status"] == "failed"
        before = traces(started)
        told = refused(started, started.work("endings", status="failed"), 409, code="run_ended", before=before)
        assert "It broke." in told["detail"]
        assert "It has ended" in refusal(started.post(f"runs/{started.run}/claims", {}), 409)["detail"]

    def test_an_end_where_the_plan_goes_on(self, started: Program) -> None:
        before = traces(started)
        told = refused(started, started.work("endings", status="completed"), 422, code="invalid", before=before)
        assert told["errors"][0]["parameter"] == "/status"


class TestSaving:
    """Checkpoints."""

    @pytest.mark.parametrize(
        ("body", "place"),
        [
            ({}, "/"),
            ({"ops": [], "state": {}}, "/"),
            ({"ops": [{"op": "set", "field": "nothing", "value": 1}]}, "/nothing"),
            ({"ops": [{"op": "set", "field": "summary", "value": "x"}]}, "/summary"),  # not what the step writes
            ({"ops": [{"op": "set", "field": "payment", "value": WIRE, "at": 1}]}, "/ops/0/at"),
            ({"ops": [{"op": "append", "field": "log"}]}, "/ops/0/items"),
            ({"ops": [{"op": "set", "field": "payment", "value": {"to": "ACME"}}]}, "/payment"),
            ({"ops": [{"op": "set", "field": "payment", "value": WIRE}] * 2}, "/ops/1"),
            ({"ops": [{"op": "append", "field": "payment", "items": [1]}]}, "/payment"),
            ({"state": {"payment": WIRE}}, "/state/"),
            ({"ops": [], "next_step": "wire"}, "/next_step"),
            ({"ops": [], "next_step": ""}, "/next_step"),
        ],
    )
    def test_what_does_not_fit_is_named_and_not_saved(self, started: Program, body: dict[str, Any], place: str) -> None:
        before = traces(started)
        told = refused(started, started.work("checkpoints", step="draft", **body), 422, code="invalid", before=before)
        assert told["errors"][0]["parameter"].startswith(place), told

    def test_a_state_that_is_too_large(self, started: Program, settings: Any) -> None:
        settings.HOLDPOINT_STATE_LIMIT = 2000
        before = traces(started)
        ops = [{"op": "set", "field": "payment", "value": {**WIRE, "to": "x" * 3000}}]
        told = refused(started, started.work("checkpoints", step="draft", ops=ops), 422, code="invalid", before=before)
        assert "write less" in told["detail"]

    def test_an_input_that_is_too_large(self, settings: Any) -> None:
        """It was told how large it may be, and not what to do."""
        program = Program()
        program.register()
        settings.HOLDPOINT_STATE_LIMIT = 2000
        before = traces(program)
        told = refused(
            program,
            program.post("runs", {"input": {"invoice": {"text": "x" * 3000}}}),
            422,
            code="invalid",
            before=before,
        )
        assert "write less" in told["detail"]
        body = {"title": "Wire", "actions": [{"id": "wire", "arguments": {"text": "x" * 3000}}]}
        assert (
            "write less" in refused(program, program.post("gates", body), 422, code="invalid", before=before)["detail"]
        )

    def test_another_step_than_the_next(self, started: Program) -> None:
        before = traces(started)
        answer = started.work("checkpoints", step="report", ops=[])
        told = refused(started, answer, 409, code="out_of_turn", before=before)
        assert told["detail"].startswith("The step draft comes next, not report")


def test_fields_that_each_refer_to_too_much_are_refused_together() -> None:
    """Each was asked by itself, and for a thousand of them that held the server up for an hour."""
    program = Program()
    double = {f"a{n}": {"anyOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)} | {"a40": {"type": "null"}}
    fields = {f"f{n}": {"not": {"$ref": "#/$defs/a0"}} for n in range(1000)}
    refuses = {f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(40)} | {"a40": {}}
    for definitions in (double, refuses):
        schema = {"type": "object", "properties": fields, "$defs": definitions}
        body = {"version": "1", "state_schema": schema, "steps": [{"name": "a", "ends": True}]}
        told = refusal(program.post(f"agents/{program.agent}/versions", body), 422)
        assert told["errors"][0]["parameter"].startswith("/state_schema")
    assert not Plan.objects.filter(agent=program.agent).exists()


def asked(schema: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An action with one argument, and what its schema says of that."""
    return {"id": "wire", "arguments": {"n": 1}, "schema": {"properties": {"n": schema}}, **more}


class TestAsking:
    """Gates."""

    @pytest.mark.parametrize(
        ("spoilt", "place", "said"),
        [
            ({"actions": []}, "/actions", "needs at least one action"),
            ({"actions": [ACTION, ACTION]}, "/actions/1/id", "'wire' is used twice"),
            ({"actions": [{**ACTION, "pointer": "/nothing"}]}, "/actions/0/pointer", "there is nothing at /nothing"),
            ({"actions": [{**ACTION, "pinned": ["/to", "/iban"]}]}, "/actions/0/pinned/1", "there is nothing at /iban"),
            ({"actions": [{**ACTION, "pinned": ["amount"]}]}, "/actions/0/pinned/0", "a pin must be a JSON Pointer"),
            ({"quotes": [{"label": "Marit", "pointer": "/mail"}]}, "/quotes/0/pointer", "there is nothing at /mail"),
            (
                {"actions": [{**ACTION, "schema": {"required": ["iban"]}}]},
                "/actions/0/arguments",
                "'iban' is a required",
            ),
            ({"actions": [{**ACTION, "schema": {"type": "nothing"}}]}, "/actions/0/schema", "not valid"),
            ({"actions": [{**ACTION, "effect": "report"}]}, "/", "report"),
            ({"actions": [{**ACTION, "id": "wi re"}]}, "/actions/0/id", "not an identifier"),
            ({"actions": [{**ACTION, "tool": "wi\u202ere"}]}, "/actions/0/tool", "not an identifier"),
            ({"risk": "none"}, "/risk", "'none' is none of low, medium, high, critical"),
            ({"actions": [{**ACTION, "verdicts": ["maybe"]}]}, "/actions/0/verdicts/0", "'maybe' is none of approve"),
            ({"actions": [{**ACTION, "tittle": "x"}]}, "/actions/0/tittle", "not permitted"),
        ],
    )
    def test_what_cannot_be_asked(self, started: Program, spoilt: dict[str, Any], place: str, said: str) -> None:
        started.draft()
        before = traces(started)
        answer = started.work("gates", **{"step": "review", "title": "Wire", "actions": [ACTION], **spoilt})
        told = refused(started, answer, 422, code="invalid", before=before)
        assert any(each["parameter"] == place and said in each["detail"] for each in told["errors"]), told

    @pytest.mark.parametrize(
        ("spoilt", "place", "said"),
        [
            ({"actions": []}, "/actions", "needs at least one action"),
            ({"actions": [{"id": "a", "arguments": {}}, {"id": "a", "arguments": {}}]}, "/actions/1/id", "used twice"),
            ({"actions": [{"id": "ask", "arguments": {}}]}, "/actions/0/id", "reserved name"),
            ({"state": {"wire": 1}}, "/state/wire", "name of an action"),
            ({"state": {"a/b": 1}}, "/state/a~1b", "letters, digits"),
            ({"actions": [asked({"type": "string"})]}, "/actions/0/arguments/n", "string"),
            ({"actions": [asked({"type": "texture"})]}, "/actions/0/schema", "not valid"),
            (
                {"actions": [asked({"$ref": "https://example.com/n"})]},
                "/actions/0/schema",
                "refer to #/$defs/",
            ),
            ({"actions": [asked({}, pinned=["/m"])]}, "/actions/0/pinned/0", "there is nothing at /m"),
        ],
    )
    def test_a_posted_gate_that_cannot_be_asked(self, spoilt: dict[str, Any], place: str, said: str) -> None:
        program = Program()
        before = traces(program)
        body = {"title": "Wire", "actions": [{"id": "wire", "arguments": WIRE}], **spoilt}
        told = refused(program, program.post("gates", body), 422, code="invalid", before=before)
        assert any(each["parameter"] == place and said in each["detail"] for each in told["errors"]), told


class TestEffects:
    """Grants and results."""

    def test_an_effect_that_nobody_allowed(self, started: Program) -> None:
        started.draft()
        before = traces(started)
        answer = started.work("effects", step="wire")
        assert (
            "The gate review comes next" in refused(started, answer, 409, code="out_of_turn", before=before)["detail"]
        )

    def test_a_result_of_an_effect_that_was_not_begun(self) -> None:
        program = Program()
        decide(program.to_gate())
        program.claim()
        refusal(program.report(2**40), 404)
        other = Program()
        decide(other.to_gate())
        other.claim()
        foreign = other.begin()
        assert "you may not see it" in refusal(program.report(foreign["id"]), 404)["detail"]

    def test_a_result_that_is_reported_twice(self) -> None:
        program = Program()
        decide(program.to_gate())
        program.claim()
        effect = program.begin()
        program.ok(program.report(effect["id"]))
        before = traces(program)
        for again in ({}, {"status": "failed", "error": "No."}):
            told = refused(program, program.report(effect["id"], **again), 409, code="reported_before", before=before)
            assert "is done already" in told["detail"]

    def test_a_result_under_another_token(self) -> None:
        program = Program()
        decide(program.to_gate())
        program.claim()
        effect = program.begin()
        before = traces(program)
        program.token += 1
        refused(program, program.report(effect["id"]), 409, code="no_grant", before=before)

    @pytest.mark.parametrize(
        ("body", "place"),
        [
            ({"writes": {"summary": "x"}}, "/summary"),
            ({"writes": {"receipt": 7}}, "/receipt"),
            ({"status": "failed"}, "/error"),
        ],
    )
    def test_a_result_that_does_not_fit(self, body: dict[str, Any], place: str) -> None:
        program = Program()
        decide(program.to_gate())
        program.claim()
        effect = program.begin()
        before = traces(program)
        told = refused(program, program.report(effect["id"], **body), 422, code="invalid", before=before)
        assert told["errors"][0]["parameter"] == place


class TestKeys:
    """A request that is sent again."""

    def test_it_is_done_once_and_answered_the_same(self, started: Program) -> None:
        ops = [{"op": "set", "field": "payment", "value": WIRE}]
        first = started.work("checkpoints", key="k1", step="draft", ops=ops)
        again = started.work("checkpoints", key="k1", step="draft", ops=ops)
        assert (first.status_code, again.status_code) == (201, 201)
        assert (again.json(), again["Idempotency-Replayed"]) == (first.json(), "true")
        assert Checkpoint.objects.filter(run=started.run).count() == 2

    def test_with_another_body_it_is_refused(self, started: Program) -> None:
        ops = [{"op": "set", "field": "payment", "value": WIRE}]
        started.ok(started.work("checkpoints", key="k2", step="draft", ops=ops))
        before = traces(started)
        answer = started.work("checkpoints", key="k2", step="draft", ops=[])
        assert "choose a new key" in refused(started, answer, 409, code="key_reused", before=before)["detail"]

    def test_one_that_was_refused_leaves_its_key_free(self, started: Program) -> None:
        refusal(started.work("checkpoints", key="k3", step="report", ops=[]), 409)
        ops = [{"op": "set", "field": "payment", "value": WIRE}]
        assert started.work("checkpoints", key="k3", step="draft", ops=ops).status_code == 201

    def test_a_key_that_is_none(self, started: Program) -> None:
        refusal(started.work("checkpoints", key="ö" * 3, step="draft", ops=[]), 422)

    def test_nobody_meets_the_keys_of_others(self, started: Program) -> None:
        other = Program()
        body = {"title": "Wire", "actions": [{"id": "wire", "arguments": WIRE}]}
        mine, theirs = started.post("gates", body, key="same"), other.post("gates", body, key="same")
        assert mine.json()["run"] != theirs.json()["run"]
