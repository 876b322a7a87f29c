"""Several gates posted in one call: a gate with a run of its own each, all of them or none."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Answer, Client
from approvals.models import Delivery, Gate, Policy, Webhook
from approvals.schema import validate
from checkpoints import actors
from checkpoints.audit import verify_runs
from checkpoints.models import Event, Hold, Plan, Run
from tests.agents.remote.failures.test_races import AT_ONCE, together
from tests.agents.remote.outside_program import WIRE, Program, decide
from tests.agents.remote.test_refusals import refused, traces
from tests.approvals.tools.registered_tools import make_tool
from tests.factories import make_policy
from tests.harness.sent_statements import sent

ASK: dict[str, Any] = {"title": "Wire 120.00", "actions": [{"id": "wire", "arguments": WIRE}]}


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
        "holds": list(Hold.objects.filter(run=run).values_list("kind", "reason", "by", "freed_at")),
    }  # fmt: skip


def test_each_is_what_posting_it_alone_would_have_left() -> None:
    program = Program()
    make_tool(program.team, name="bank.wire")
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


def test_one_of_them_is_decided_claimed_and_done_as_any_other() -> None:
    program = Program()
    first, second = program.ok(several(program, paying("1.00"), paying("2.00")))["gates"]
    decide(Gate.objects.get(pk=second["gate"]))
    program.run = second["run"]
    assert program.claim()["state"]["wire"]["amount"] == "2.00"
    effect = program.ok(program.work("effects", step="wire"))["next"]["effect"]["id"]
    assert program.ok(program.report(effect, writes={"wire_result": {}}))["status"] == "completed"
    assert Run.objects.get(pk=first["run"]).status == "waiting"


def test_a_hundred_cost_as_many_statements_as_two() -> None:
    program = Program()
    counts = []
    for many in (2, 2, 2, 100):  # the second finds that the policy is proven, and remembers it
        with sent() as asked:
            assert len(program.ok(several(program, *[ASK] * many))["gates"]) == many
        counts.append(len(asked))
    assert counts[2:] == [13, 13]


def test_the_schemas_of_all_of_them_are_checked_within_one_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each had a bound of its own, so that a request of a hundred could take a hundred times as long."""
    program = Program()
    monkeypatch.setattr(validate, "WORK", 20_000)

    def of_its_own(number: int) -> dict[str, Any]:
        schema = {"type": "object", "properties": {name: {"title": f"{name} {number}"} for name in WIRE}}
        return {**ASK, "actions": [{"id": "wire", "arguments": WIRE, "schema": schema}]}

    asks = [of_its_own(number) for number in range(100)]
    program.ok(several(program, *asks[:2]))
    answer = several(program, *asks[2:])
    assert answer.status_code == 422, answer.content
    assert "/gates/97" in answer.content.decode(), answer.content


def test_sent_again_with_its_key_they_are_the_same() -> None:
    program = Program()
    first = program.ok(several(program, ASK, ASK, key="k"))
    assert program.ok(several(program, ASK, ASK, key="k")) == first
    assert several(program, ASK, key="k").status_code == 409
    assert Gate.objects.filter(team=program.team).count() == 2


def test_a_key_that_comes_many_times_at_once_is_used_once(web: str) -> None:
    program = Program()
    answers = together(web, program, "gates/batches", [{"gates": [ASK] * 5}] * AT_ONCE, key="the-same-batch")
    assert {each.status_code for each in answers} == {201}
    assert len({each.text for each in answers}) == 1
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


@pytest.mark.parametrize("many", [0, 101])
def test_there_are_one_to_a_hundred(many: int) -> None:
    program = Program()
    told = refused(program, several(program, *[ASK] * many), 422, code="invalid", before=traces(program))
    assert told["errors"][0]["parameter"] == "/gates"


def test_a_tool_that_is_not_registered_is_told_by_its_place() -> None:
    program = Program()
    make_policy(program.team, name="default", registered_only=True)
    told = refused(program, several(program, ASK), 422, code="tool_not_registered", before=traces(program))
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
    Policy.objects.create(team=program.team, name="default", hourly=200, pause=None)
    answers = together(web, program, "gates/batches", [{"gates": [ASK] * 60}] * AT_ONCE)
    assert sorted(each.status_code for each in answers) == [201] * 3 + [429] * (AT_ONCE - 3)
    assert Gate.objects.filter(team=program.team).count() == 180


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


def test_a_webhook_hears_of_each() -> None:
    program = Program()
    Webhook.objects.make(team=program.team, url="https://example.com/h", by=actors.SYSTEM)
    told = program.ok(several(program, ASK, ASK))["gates"]
    sent = Delivery.objects.filter(gate__team=program.team, kind="gate.opened")
    assert sorted(sent.values_list("gate", flat=True)) == sorted(each["gate"] for each in told)
