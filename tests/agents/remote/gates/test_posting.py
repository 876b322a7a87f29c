"""Gates posted without a plan: several in one call, all of them or none; for one that only asks, one caller is told.

Nothing recorded that a program had been told, so the same approval was an answer to each call that was alike.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from agents.api.protocol import idempotency_keys
from agents.models import Answer, Client, Effect
from agents.serving.sweeper import Sweeper
from approvals.models import Gate, Message, Policy, Webhook
from approvals.schema import validate
from checkpoints import actors
from checkpoints.audit import verify_runs
from checkpoints.models import Event, Hold, Plan, Run
from checkpoints.postgresql.sql import run_sql
from config.housekeeping import clear_answers
from tests.agents.api.test_doors import refusal
from tests.agents.remote.failures.test_races import AT_ONCE, together
from tests.agents.remote.outside_program import WIRE, Program, closed_before, decide
from tests.agents.remote.test_refusals import refused, traces
from tests.approvals.tools.registered_tools import make_tool
from tests.factories import make_policy, make_user
from tests.factories.tokens import bearing, make_token
from tests.harness.racing_threads import race
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

ASK: dict[str, Any] = {"title": "Wire 120.00", "actions": [{"id": "wire", "arguments": WIRE}]}
ACTION: dict[str, Any] = ASK["actions"][0]


def several(program: Program, *gates: dict[str, Any], key: str = "", **more: Any) -> Any:
    return program.post("gates/batches", {"gates": list(gates), **more}, key=key)


def paying(amount: str, **more: Any) -> dict[str, Any]:
    arguments = {**WIRE, "amount": amount}
    return {**ASK, "title": f"Wire {amount}", "actions": [{"id": "wire", "arguments": arguments}], **more}


def left_by(run: int) -> dict[str, Any]:
    """All that a posted gate leaves, without what names it or tells the time."""
    row, gate = Run.objects.get(pk=run), Gate.objects.get(run=run)
    events = Event.objects.filter(run_id=run).order_by("id")
    own = ("id", "lineage", "head", "created_at")
    return {
        "run": {name: value for name, value in Run.objects.values().get(pk=run).items() if name not in own},
        "checkpoint": row.checkpoints.values_list("seq", "kind", "step", "next_step", "token", "state_digest").get(),
        "events": list(events.values_list("kind", "version", "team_id", "actor", "actor_name")),
        "subjects": [each.replace(str(run), "run").replace(str(gate.pk), "gate") for each in events.values_list(
            "subject", flat=True)],
        "client": Client.objects.values("token", "owner", "name", "lease", "deferred").get(run=run),
        "gate": (gate.status, gate.version, gate.title, gate.terms, gate.risk, gate.likeness, gate.asked_by_id),
        "proposals": [each.card for each in gate.proposals.all()],
        "deliveries": list(Message.objects.filter(gate=gate).values_list("kind", "webhook")),
        "holds": list(Hold.objects.filter(run=run).values_list("kind", "reason", "by", "freed_at")),
    }  # fmt: skip


def test_each_is_what_posting_it_alone_would_have_left() -> None:
    program = Program()
    make_tool(program.team, name="bank.wire")
    Webhook.objects.make(team=program.team, url="https://example.com/h", by=actors.SYSTEM)
    asks = [paying("1.00"), paying("2.00", ask_only=True), paying("3.00", thread="t", state={"invoice": 7})]
    asks[2]["actions"][0]["tool"] = "bank.wire"
    alone = [program.ok(program.post("gates", {**ask, "worker": "box:81", "deferred": True})) for ask in asks]
    told = program.ok(several(program, *asks, worker="box:81", deferred=True))["gates"]
    assert len({each["run"] for each in [*alone, *told]}) == 6
    for one, other in zip(alone, told, strict=True):
        assert left_by(one["run"]) == left_by(other["run"])
        names = ("run", "gate", "gate_url")
        assert {**one, **{name: other[name] for name in names}} == other
        assert verify_runs.verify_run(Run.objects.get(pk=other["run"])) == []
    assert [Gate.objects.get(pk=each["gate"]).title for each in told] == ["Wire 1.00", "Wire 2.00", "Wire 3.00"]
    assert Plan.objects.filter(agent=program.agent).count() == 3


def test_many_cost_as_many_statements_as_two() -> None:
    program = Program()
    counts = []
    for many in (2, 2, 2, 20):  # the second finds that the policy is proven, and remembers it
        with sent() as asked:
            assert len(program.ok(several(program, *[ASK] * many))["gates"]) == many
        counts.append(len(asked))
    assert counts[2:] == [13, 13]


def test_the_schemas_of_all_of_them_are_checked_within_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each had a bound of its own, so that a request of a hundred could take a hundred times as long."""
    program = Program()
    monkeypatch.setattr(validate, "WORK", 4_000)

    def of_its_own(number: int) -> dict[str, Any]:
        schema = {"type": "object", "properties": {name: {"title": f"{name} {number}"} for name in WIRE}}
        return {**ASK, "actions": [{"id": "wire", "arguments": WIRE, "schema": schema}]}

    asks = [of_its_own(number) for number in range(30)]
    program.ok(several(program, *asks[:2]))
    answer = several(program, *asks[2:])
    assert answer.status_code == 422, answer.content
    assert "/gates/27" in answer.content.decode(), answer.content


def test_sent_again_with_its_key_also_at_once_they_are_the_same(web: str) -> None:
    program = Program()
    answers = together(web, program, "gates/batches", [{"gates": [ASK] * 5}] * AT_ONCE, key="the-same-batch")
    assert {each.status_code for each in answers} == {201}
    assert len({each.text for each in answers}) == 1
    assert program.ok(several(program, *[ASK] * 5, key="the-same-batch")) == answers[0].json()
    assert several(program, ASK, key="the-same-batch").status_code == 409
    assert Gate.objects.filter(team=program.team).count() == 5
    assert Answer.objects.filter(key="the-same-batch").count() == 1


def test_the_faults_of_all_are_told_by_their_places_and_none_is_opened() -> None:
    program = Program()
    before = traces(program)
    strange = {**ASK, "policy": "unheard-of"}
    twice = {**ASK, "actions": [*ASK["actions"], *ASK["actions"]]}
    typed = {"id": "wire", "arguments": {"n": 1}, "schema": {"properties": {"n": {"type": "string"}}}}
    wrong = {**ASK, "actions": [typed]}
    told = refused(program, several(program, ASK, strange, twice, wrong), 422, code="invalid", before=before)
    places = [each["parameter"] for each in told["errors"]]
    assert places == ["/gates/1/policy", "/gates/2/actions/1/id", "/gates/3/actions/0/arguments/n"]
    junk = several(program, ASK, {**ASK, "title": 7})
    places = [each["parameter"] for each in refused(program, junk, 422, code="invalid", before=before)["errors"]]
    assert places == ["/gates/1/title"]
    for many in (0, 101):
        told = refused(program, several(program, *[ASK] * many), 422, code="invalid", before=before)
        assert told["errors"][0]["parameter"] == "/gates"
    make_policy(program.team, name="default", registered_only=True)
    told = refused(program, several(program, ASK), 422, code="tool_not_registered", before=before)
    assert told["errors"][0]["parameter"] == "/gates/0/actions/0/tool"


def test_each_counts_for_the_policys_hour() -> None:
    program = Program()
    Policy.objects.create(team=program.team, name="default", hourly=5, pause=None)
    program.ok(several(program, *[ASK] * 3))
    before = traces(program)
    refused(program, several(program, *[ASK] * 3), 429, code="too_many_gates", before=before)
    told = refused(program, several(program, *[ASK] * 6), 422, code="invalid", before=before)
    assert "allows 5 gates an hour" in told["errors"][0]["detail"]
    program.ok(several(program, *[ASK] * 2))
    refused(program, several(program, ASK), 429, code="too_many_gates", before=traces(program))


def test_several_at_once_do_not_pass_the_policys_hour(web: str) -> None:
    """Each counted those that were there before, far from the bound, and all were let through."""
    program = Program()
    Policy.objects.create(team=program.team, name="default", hourly=20, pause=None)
    answers = together(web, program, "gates/batches", [{"gates": [ASK] * 6}] * AT_ONCE)
    assert sorted(each.status_code for each in answers) == [201] * 3 + [429] * (AT_ONCE - 3)
    assert Gate.objects.filter(team=program.team).count() == 18


def test_what_people_rejected_twice_waits_also_among_others() -> None:
    program = Program()
    for _ in range(2):
        [told] = program.ok(several(program, paying("9.00")))["gates"]
        decide(Gate.objects.get(pk=told["gate"]), "reject")
    before = traces(program)
    refused(program, several(program, paying("1.00"), paying("9.00")), 429, code="rejected_before", before=before)
    [told] = program.ok(several(program, paying("1.00")))["gates"]
    assert Gate.objects.get(pk=told["gate"]).attempt == 1


def test_each_counts_as_a_request(settings: Any) -> None:
    settings.HOLDPOINT_API_RATE = 10
    program = Program()
    program.ok(several(program, *[ASK] * 6))
    before = traces(program)
    assert several(program, *[ASK] * 6).status_code == 429
    assert traces(program) == before


def posted(program: Program, **more: Any) -> Gate:
    told = program.ok(program.post("gates", {"title": "Wire 120.00?", "actions": [ACTION], **more}))
    program.run = told["run"]
    return Gate.objects.get(pk=told["gate"])


def test_its_run_ends_with_the_decision_and_nobody_claims_it_and_what_was_allowed_waits_for_its_program() -> None:
    """One whose only action was answered for stayed queued until a program claimed it, with nothing to do in it."""
    takes = {**ACTION, "verdicts": ["approve", "edit", "reject", "respond"]}
    programs = [Program() for _ in range(7)]
    edited, answered, rejected, at_once, performing, done_for = programs[1:]
    gates = [posted(program, ask_only=program not in (performing, done_for), actions=[takes]) for program in programs]
    for gate, program in zip(gates, programs, strict=True):
        if program in (answered, done_for):
            decide(gate, "", verdicts={"wire": {"verdict": "respond", "response": "By card."}})
        elif program is edited:
            decide(gate, "edit", arguments={"wire": {**WIRE, "amount": "1.00"}})
        else:
            decide(gate, "reject" if program is rejected else "approve", comment="Fine.")
    told = at_once.claim()
    assert (told["status"], told["next"]) == ("completed", None)
    for gate in gates:
        closed_before(gate)
    Sweeper().go_on_alone()
    ends = [program.row().status for program in programs]
    assert ends == ["completed"] * 3 + ["cancelled", "completed", "queued", "completed"]
    assert not Effect.objects.filter(run__in=[program.run for program in programs]).exists()
    pairs = zip(programs, gates, strict=True)
    outcomes = [program.client.get(f"/api/gates/{gate.pk}/outcome").json() for program, gate in pairs]
    assert [each["grants"] for each in outcomes[:5]] == [[]] * 5
    assert outcomes[1]["outcome"]["arguments"]["wire"]["amount"] == "1.00"
    assert outcomes[2]["outcome"]["actions"]["wire"]["response"] == "By card."
    assert performing.claim()["next"]["step"] == "wire"


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


def take(program: Program, gate: Gate, to: str = "call-1", **more: Any) -> Any:
    return program.post(f"gates/{gate.pk}/handouts", {"to": to, **more})


def approved(program: Program) -> Gate:
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


@pytest.mark.parametrize("address", ["gates", "gates/batches", "runs"])
def test_a_key_is_good_for_as_long_as_what_it_opened(address: str) -> None:
    """A week later the same request asked people, or did the work, a second time."""
    program = Program()
    program.register()
    bodies = {
        "gates": ASK,
        "gates/batches": {"gates": [ASK, paying("7.00")]},
        "runs": {"agent": program.agent, "input": {"invoice": {"number": 7}}},
    }
    first = program.post(address, bodies[address], key="invoice-7")
    assert first.status_code == 201, first.content
    Answer.objects.filter(key="invoice-7").update(at=timezone.now() - timedelta(days=400))
    clear_answers()
    again = program.post(address, bodies[address], key="invoice-7")
    assert (again.content, again[idempotency_keys.REPLAYED]) == (first.content, "true")


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


def withdraw(program: Program, gate: Gate, *, key: str = "", **body: Any) -> Any:
    return program.post(f"gates/{gate.pk}/withdrawals", body, key=key)


def test_its_own_gate_is_withdrawn_and_its_run_ends() -> None:
    program = Program()
    gate = program.to_gate()
    told = program.ok(withdraw(program, gate, key="k1", reason="The invoice was cancelled."))
    assert (told["status"], told["outcome"]["kind"], told["grants"]) == ("withdrawn", "withdrawn", [])
    assert told["outcome"]["feedback"] == f"{program.agent} withdrew it: “The invoice was cancelled.”"
    closed = Event.objects.get(kind="gate.withdrawn", subject=f"gate:{gate.pk}")
    assert closed.actor == f"agent:{program.agent}"
    assert program.ok(withdraw(program, gate, key="k1", reason="The invoice was cancelled.")) == told
    assert refusal(withdraw(program, gate), 409)["code"] == "withdrawn"
    assert program.claim()["status"] == "cancelled"


def test_what_is_decided_stays_decided_and_what_people_are_asked_after_a_fault_stays() -> None:
    program = Program()
    gate = program.to_gate()
    decide(gate)
    told = refusal(withdraw(program, gate), 409)
    assert (told["code"], "already decided this" in told["detail"]) == ("already_decided", True)
    assert Gate.objects.get(pk=gate.pk).status == "decided"
    program.claim()
    told = program.ok(program.work(f"effects/{program.begin()['id']}/results", status="unknown", error="A timeout."))
    question = Gate.objects.get(pk=told["gate"])
    assert "Only their answer" in refusal(withdraw(program, question), 409)["detail"]
    assert Gate.objects.get(pk=question.pk).status == "open"


def test_nobody_takes_back_what_others_ask() -> None:
    gate = Program().to_gate()
    member = bearing(make_token(make_user("Bo Member", gate.team))[1])
    answer = member.post(f"/api/gates/{gate.pk}/withdrawals", {}, content_type="application/json")
    assert "cancel the run by" in refusal(answer, 403)["detail"]
    assert Gate.objects.get(pk=gate.pk).status == "open"
