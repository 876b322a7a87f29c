"""A program asks and waits: what people decide is what its function gets, and what it throws is what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest

from agents.models import Effect
from approvals.gates import closing, questions, thread
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.clients.typescript.program import Program, Running, Thrown
from tests.clients.world import WIRE, World, ended
from tests.factories import ann
from tests.harness.examples import first_alone
from tests.harness.waiting import until

WIRES = """
const draws = [{ kind: "command", at: "/to" }];
const options = { title: "Pay invoice 7", state: { invoice: 7 }, pinned: ["amount"], draws, ...%s };
return hp.approve("wire", WIRE, options, (call) => {
  write("call", call);
  return { id: "tx_1" };
});
"""


def wires(program: Program, world: World, options: str = "{}", **settings: Any) -> Running:
    """Ask, wire, and return what came of it."""
    return program(world, WIRES % options, **settings)


def test_an_edit_is_what_runs(web: str, program: Program) -> None:
    world = World(web)
    told = wires(program, world)
    gate = world.decides("edit", arguments={"wire": {**WIRE, "amount": "100.00"}}, comment="A tenth less.")
    assert told.result() == {"id": "tx_1"}
    call = told.wrote("call")
    assert call["arguments"] == {"to": "ACME", "amount": "100.00"}
    assert call["text"] == '{"amount":"100.00","to":"ACME"}'
    assert call["edits"] == [{"op": "replace", "path": "/amount", "value": "100.00"}]
    assert call["changes"] == ['amount is now "100.00"']
    assert (call["decision"]["by"], call["decision"]["comment"]) == ("Ann Okafor", "A tenth less.")
    assert call["url"] == f"{web}/gates/{gate.pk}/"
    assert ended(call["run"])["wire_result"] == {"id": "tx_1"}
    row = Effect.objects.get(run=call["run"])
    assert (row.status, row.key, row.attempts) == ("done", call["key"], 1)
    assert gate.asked.actions[0].pinned == ("/amount",)
    assert [each.to_json() for each in gate.asked.actions[0].draws] == [{"kind": "command", "at": "/to"}]


def test_a_no_is_thrown_with_its_words(world: World, program: Program) -> None:
    told = wires(program, world)
    gate = world.decides("reject", comment="Not this month")
    with pytest.raises(
        Thrown, match=r"Rejected: Ann Okafor said no to wire: Not this month\. Do not do it another"
    ) as no:
        told.result()
    assert no.value.said | {"by": "Ann Okafor", "reason": "Not this month", "gate": gate.pk} == no.value.said
    assert not Effect.objects.filter(run=gate.run_id).exists()


@pytest.mark.long
def test_an_answer_in_its_place_is_thrown_as_a_value(world: World, program: Program) -> None:
    told = wires(program, world, "{ respond: true }")
    world.decides("", verdicts={"wire": {"verdict": "respond", "response": "Paid by card already."}})
    with pytest.raises(Thrown, match="Answered: Ann Okafor answered instead of wire, which is not done") as answered:
        told.result()
    assert answered.value.said["answer"] == "Paid by card already."


def test_a_deadline_that_passed_is_no_rejection(world: World, program: Program) -> None:
    told = wires(program, world)
    gate = world.gate()
    closing.pass_deadline(gate)
    closing.expire(gate, by=SYSTEM)
    with pytest.raises(Thrown, match="Expired: Nobody answered"):
        told.result()


@pytest.mark.long
def test_a_gate_that_was_withdrawn_says_why(world: World, program: Program) -> None:
    told = program(world, 'return hp.resume((await hp.defer("wire", WIRE)).id, {}, () => 1);')
    closing.withdraw(world.gate(), by=SYSTEM, reason="The invoice was void.")
    with pytest.raises(Thrown, match=r"Withdrawn: .*The invoice was void\."):
        told.result()
    own = 'const { id } = await hp.defer("wire", WIRE); await hp.withdraw(id, "Not needed."); return hp.said(id);'
    with pytest.raises(Thrown, match=r"Withdrawn: .*Not needed\."):
        program(world, own).result()


@pytest.mark.parametrize("timeout", first_alone([0.7, 0]))
def test_nobody_decides_in_the_time_that_is_given(world: World, program: Program, timeout: float) -> None:
    """A time that was no whole number of milliseconds was refused by Node, as it is in all but the longest waits."""
    with pytest.raises(Thrown, match=r"StillOpen: .*Resume it by its number later") as still:
        wires(program, world, f"{{ timeout: {timeout} }}").result()
    assert still.value.said["gate"] == world.gate().pk
    assert Gate.objects.get(pk=still.value.said["gate"]).status == "open"


def test_a_signal_ends_the_waiting_and_leaves_the_gate_open(world: World, program: Program) -> None:
    told = program(
        world,
        """
        const control = new AbortController();
        process.once("SIGUSR2", () => control.abort(new Error("The chat was closed.")));
        console.log("listens");
        return hp.approve("wire", WIRE, { signal: control.signal }, () => 1);
        """,
    )
    told.service.says("listens")
    gate = world.gate()
    told.service.process.send_signal(12)
    with pytest.raises(Thrown, match=r"Error: The chat was closed\."):
        told.result()
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_nobody_is_asked_without_a_function_that_acts(world: World, program: Program) -> None:
    with pytest.raises(Thrown, match="TypeError: Give a function"):
        program(world, 'return hp.approve("wire", WIRE, {});').result()
    assert not Gate.objects.filter(team=world.team).exists()


@pytest.mark.long
@pytest.mark.parametrize(
    ("throws", "status", "words"),
    [
        ('throw new Error("line one\\nline two")', "unknown", "Error: line one line two"),
        ('throw "odd"', "unknown", "odd"),
        ('throw new NotDone("refused at the door")', "failed", "refused at the door"),
    ],
)
def test_what_is_thrown_decides_between_failed_and_unknown(
    world: World, program: Program, throws: str, status: str, words: str
) -> None:
    told = program(world, f'return hp.approve("wire", WIRE, {{}}, () => {{ {throws}; }});')
    world.decides()
    with pytest.raises(Thrown):
        told.result()
    row = Effect.objects.get(run__team=world.team)
    assert (row.status, row.error) == (status, words)


def test_a_server_that_did_not_answer_the_work_itself_leaves_it_to_people_at_once(
    world: World, program: Program
) -> None:
    """It was taken for the report's own: nothing was reported, and people were asked after the lease."""
    told = program(
        world, 'return hp.approve("wire", WIRE, {}, () => { throw new holdpoint.Unreachable("No answer."); });'
    )
    world.decides()
    with pytest.raises(Thrown, match="Unreachable: No answer"):
        told.result()
    row = Effect.objects.get(run__team=world.team)
    assert (row.status, row.error) == ("unknown", "Unreachable: No answer.")


def test_a_generator_is_nobodys_result(world: World, program: Program) -> None:
    """It was reported as done with {}, although nothing had run."""
    told = program(
        world,
        """
        const refused = await hp.approve("wire", WIRE, {}, function* () { yield 1; }).catch((error) => error.message);
        write("refused", refused);
        async function* yields() { yield 1; }
        return hp.approve("wire", WIRE, {}, () => yields());
        """,
    )
    assert "yields, so that calling it does nothing" in told.wrote("refused")
    world.decides()
    with pytest.raises(Thrown, match="HoldpointError: wire returned a generator"):
        told.result()
    assert [each.status for each in Effect.objects.filter(run__team=world.team)] == ["unknown"]


@pytest.mark.long
def test_a_failure_that_may_be_tried_again_is_handed_out_again(world: World, program: Program) -> None:
    told = program(
        world,
        """
        const { id } = await hp.defer("wire", WIRE);
        const refuses = () => { throw new NotDone("503", { retry: true }); };
        await hp.resume(id, {}, refuses).catch((error) => write("first", error.message));
        return hp.resume(id, {}, () => () => "no JSON");
        """,
    )
    world.decides()
    told.result()
    row = Effect.objects.get(run__team=world.team)
    assert row.status == "done"


def test_everything_asked_in_one_conversation_is_one_thread(world: World, program: Program) -> None:
    runs = program(
        world,
        """
        const first = await hp.thread("chat-7", async () => { await null; return hp.defer("wire", WIRE); });
        const others = [await hp.defer("wire", WIRE, { thread: "chat-8" }), await hp.defer("wire", WIRE)];
        return [first, ...others].map((each) => each.run);
        """,
    ).result()
    assert [Run.objects.get(pk=run).thread for run in runs] == ["chat-7", "chat-8", ""]


def test_heartbeats_keep_a_claim_while_the_function_works(world: World, program: Program) -> None:
    told = program(
        world,
        """
        return hp.approve("wire", WIRE, {}, async (call) => {
          write("working", call.run);
          const alive = setInterval(() => undefined, 1000);
          await new Promise((done) => process.once("SIGUSR2", done));
          clearInterval(alive);
          call.check();
          return 1;
        });
        """,
    )
    world.decides()
    run = told.wrote("working")
    leases = {Run.objects.get(pk=run).lease_until}

    def renewed() -> bool:
        leases.add(Run.objects.get(pk=run).lease_until)
        return len(leases) > 3

    until(renewed, what="heartbeats renew the lease")
    told.service.process.send_signal(12)
    assert told.result() == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        ("`${q.by}: ${q.text} Because.`", "gate.answered", "Ann Okafor: Why? Because."),
        ("{ throw new Error('no idea'); }", "gate.unanswered", "Error: no idea"),
    ],
)
def test_a_question_is_answered_while_the_program_waits_and_the_gate_stays_open(
    world: World, program: Program, answer: str, kind: str, words: str
) -> None:
    told = wires(program, world, on_question=f"(q) => {answer}")
    gate = world.gate()
    questions.ask(gate, by=ann(world.team), text="Why?", key="k")
    [said] = until(lambda: [each for each in thread.of_gate(gate) if each.by_agent], what="it answers")
    assert (said.kind, said.text) == (kind, words)
    world.decides()
    assert told.result() == {"id": "tx_1"}
