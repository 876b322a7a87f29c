"""Several actions at one gate, and questions alone."""

from __future__ import annotations

import pytest

from agents.models import Effect
from approvals.models import Gate
from checkpoints.models import Run
from tests.agents.remote.outside_program import decide
from tests.clients.typescript.program import Program, Thrown
from tests.clients.typescript.test_resuming import asked
from tests.clients.world import WIRE, World, ended

MAIL = {"to": "ellery@example.org", "text": "It is paid."}
ASKS = """
const MAIL = { to: "ellery@example.org", text: "It is paid." };
const both = [
  { name: "wire", arguments: WIRE, pinned: ["amount"], idempotent: true },
  { name: "mail", arguments: MAIL, respond: true },
];
const quoted = {
  title: "Pay and tell",
  state: { mail_in: { text: "Where is my money?" } },
  quotes: [{ label: "Marit Ellery", pointer: "/mail_in/text", role: "by mail" }],
};
const act = (call) => { write(call.name, call.arguments); return { did: call.name }; };
"""
BOTH = f"{ASKS} return hp.approveEach(both, quoted, act);"


def test_all_of_them_are_asked_at_one_gate_and_done_one_after_the_other(world: World, program: Program) -> None:
    told = program(world, BOTH)
    gate = world.gate()
    assert [action.id for action in gate.asked.actions] == ["wire", "mail"]
    assert gate.asked.quotes[0].label == "Marit Ellery"
    world.decides("edit", arguments={"wire": {**WIRE, "amount": "1.00"}})
    results = {"wire": {"did": "wire"}, "mail": {"did": "mail"}}
    assert told.result() == {"refused": {}, "answers": {}, "results": results}
    assert (told.wrote("wire"), told.wrote("mail")) == ({**WIRE, "amount": "1.00"}, MAIL)
    assert ended(gate.run_id)["mail_result"] == {"did": "mail"}
    assert Gate.objects.filter(team=world.team).count() == 1


def test_what_is_refused_or_answered_for_is_not_done(world: World, program: Program) -> None:
    told = program(world, BOTH)
    respond = {"verdict": "respond", "response": "I rang her."}
    world.decides("", verdicts={"wire": {"verdict": "reject", "reason": "Not this month."}, "mail": respond})
    got = told.result()
    assert (got["refused"]["wire"]["by"], got["refused"]["wire"]["reason"]) == ("Ann Okafor", "Not this month.")
    assert got["answers"] == {"mail": "I rang her."}
    assert not Effect.objects.filter(run__team=world.team).exists()


@pytest.mark.long
def test_a_no_to_all_of_them_is_thrown(world: World, program: Program) -> None:
    told = program(world, BOTH)
    world.decides("reject", comment="Not this month.")
    with pytest.raises(Thrown, match=r"Rejected: Ann Okafor said no to wire, mail: Not this month\."):
        told.result()


@pytest.mark.long
def test_another_process_goes_on_with_what_is_not_done(world: World, program: Program) -> None:
    gate = program(world, f"{ASKS} return (await hp.deferEach(both, quoted)).id;").result()
    world.decides()
    stops = "return hp.resumeEach(%d, {}, (call) => { if (call.name === 'mail') process.exit(3); return 'first'; });"
    program(world, stops % gate).service.process.wait()
    unknown = asked(world, program, f"{ASKS} return hp.resumeEach({gate}, {{ timeout: 0 }}, act);")
    assert "Did “mail” happen" in str(unknown)
    assert [(each.step, each.status) for each in Effect.objects.filter(run__team=world.team).order_by("pk")] == [
        ("wire", "done"), ("mail", "unknown")
    ]  # fmt: skip


@pytest.mark.long
def test_one_that_is_resumed_alone_names_the_call_for_several(world: World, program: Program) -> None:
    with pytest.raises(Thrown, match="call resumeEach"):
        program(world, f"{ASKS} return hp.resume((await hp.deferEach(both, quoted)).id, {{}}, act);").result()


@pytest.mark.long
def test_a_question_is_answered_and_leaves_no_run_in_the_queue(world: World, program: Program) -> None:
    told = program(world, 'return hp.ask("deploy", { version: "4.2" }, { title: "Deploy 4.2 now?", respond: true });')
    gate = world.decides("edit", arguments={"deploy": {"version": "4.1"}}, comment="Not that one.")
    said = told.result()
    assert (said["arguments"], said["changes"]) == ({"version": "4.1"}, ['version is now "4.1"'])
    assert said["decision"] | {"verdict": "edit", "by": "Ann Okafor", "comment": "Not that one."} == said["decision"]
    assert Run.objects.get(pk=gate.run_id).status == "completed"
    assert not Effect.objects.filter(run=gate.run_id).exists()


@pytest.mark.long
def test_a_question_may_be_answered_in_words(world: World, program: Program) -> None:
    told = program(world, 'return hp.ask("colour", {}, { title: "Which colour?", respond: true });')
    world.decides("", verdicts={"colour": {"verdict": "respond", "response": "Green."}})
    assert told.result()["answer"] == "Green."


@pytest.mark.long
def test_the_answer_to_a_question_that_was_deferred_is_had_later(web: str, program: Program) -> None:
    world = World(web)
    pending = program(world, 'return hp.defer("deploy", { version: "4.2" }, { askOnly: true });').result()
    assert pending["url"] == f"{web}/gates/{pending['id']}/"
    world.decides()
    assert program(world, f"return hp.said({pending['id']});").result()["arguments"] == {"version": "4.2"}
    assert Run.objects.get(pk=pending["run"]).status == "completed"


ASKS_ALL = """
const all = [
  { name: "wire", arguments: WIRE, title: "Pay invoice 7", thread: "night" },
  { actions: [{ name: "wire", arguments: WIRE }, { name: "mail", arguments: { to: "ACME" } }], title: "Pay and tell" },
];
"""


@pytest.mark.long
def test_many_things_are_asked_in_one_call_a_gate_each(web: str, program: Program) -> None:
    world = World(web)
    twice = 'return [await hp.deferAll(all, { key: "night-17" }), await hp.deferAll(all, { key: "night-17" })];'
    first, again = program(world, ASKS_ALL + twice).result()
    assert first == again
    assert [each["url"] for each in first] == [f"{web}/gates/{each['id']}/" for each in first]
    gates = Gate.objects.filter(team=world.team).order_by("pk")
    assert [each.asked.title for each in gates] == ["Pay invoice 7", "Pay and tell"]
    decide(gates[0])
    done = program(world, f"return hp.resume({gates[0].pk}, {{}}, (call) => call.arguments.to);").result()
    assert (done, ended(gates[0].run_id)["wire_result"]) == ("ACME", "ACME")


@pytest.mark.long
def test_many_questions_perform_nothing_and_are_for_one_agent(world: World, program: Program) -> None:
    asks = "const [one] = await hp.deferAll(all.slice(0, 1), { askOnly: true }); write('asked', one.id);"
    told = program(world, f"{ASKS_ALL} {asks} return (await hp.said(one.id)).decision.by;")
    told.wrote("asked")
    assert world.decides().asked.allows == ()
    assert told.result() == "Ann Okafor"
    assert program(world, "return hp.deferAll([]);").result() == []
    with pytest.raises(Thrown, match="one agent and team"):
        program(world, f"{ASKS_ALL} return hp.deferAll([all[0], {{ ...all[1], agent: 'another' }}]);").result()
