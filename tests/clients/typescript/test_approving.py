"""What people decide is what a program's function gets, text for text, and what it throws is what becomes of it."""

from __future__ import annotations

import json
import re

import pytest

from agents.models import Effect
from approvals.gates import closing, questions, thread
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.agents.remote.outside_program import decide
from tests.clients.typescript.program import Program, Thrown, wires
from tests.clients.typescript.test_resuming import asked
from tests.clients.world import WIRE, World, ended
from tests.factories import ann
from tests.harness.waiting import until


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


def test_nobody_decides_in_the_time_that_is_given_and_without_a_function_nobody_is_asked(
    world: World, program: Program
) -> None:
    """A time that was no whole number of milliseconds was refused by Node, as it is in all but the longest waits."""
    with pytest.raises(Thrown, match="TypeError: Give a function"):
        program(world, 'return hp.approve("wire", WIRE, {});').result()
    assert not Gate.objects.filter(team=world.team).exists()
    with pytest.raises(Thrown, match=r"StillOpen: .*Resume it by its number later") as still:
        wires(program, world, "{ timeout: 0.7 }").result()
    assert still.value.said["gate"] == world.gate().pk
    assert Gate.objects.get(pk=still.value.said["gate"]).status == "open"


def test_what_ends_without_a_decision_is_thrown_as_what_it_is(world: World, program: Program) -> None:
    silent, void, answered = program(
        world,
        """
        const own = await hp.defer("wire", WIRE);
        await hp.withdraw(own.id, "Not needed.");
        const silent = await hp.defer("wire", WIRE);
        return [silent.id, own.id, (await hp.defer("wire", WIRE, { respond: true })).id];
        """,
    ).result()
    world.decides("", verdicts={"wire": {"verdict": "respond", "response": "Paid by card already."}})
    gate = Gate.objects.get(pk=silent)
    closing.pass_deadline(gate)
    closing.expire(gate, by=SYSTEM)
    code = "hp.resume(id, {}, () => 1).catch((error) => ({ told: `${error.name}: ${error.message}`, ...error }))"
    told = program(world, f"return Promise.all([{silent}, {void}, {answered}].map((id) => {code}));").result()
    assert told[0]["told"].startswith("Expired: Nobody answered")
    assert re.search(r"Withdrawn: .*Not needed\.", told[1]["told"])
    assert told[2]["told"].startswith("Answered: Ann Okafor answered instead of wire, which is not done")
    assert told[2]["answer"] == "Paid by card already."


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


def test_what_is_thrown_decides_between_failed_and_unknown(world: World, program: Program) -> None:
    """What a call inside of the work threw was taken for the report's own: nothing was reported."""
    cases = {
        'throw new Error("line one\\nline two")': ("unknown", "Error: line one line two"),
        'throw "odd"': ("unknown", "odd"),
        'throw new holdpoint.Unreachable("No answer.")': ("unknown", "Unreachable: No answer."),
        'throw new NotDone("refused at the door")': ("failed", "refused at the door"),
    }
    asks = "".join(f'await hp.approve("wire", WIRE, {{}}, () => {{ {each}; }}).catch(() => 1);' for each in cases)
    again = """
        let tries = 0;
        const work = () => { tries += 1; if (tries === 1) throw new NotDone("503", { retry: true }); return () => 1; };
        const { id } = await hp.defer("wire", WIRE);
        await hp.resume(id, {}, work).catch(() => 1);
        await hp.resume(id, {}, work);
    """
    told = program(world, f"{asks} {again} return tries;")
    for _ in range(len(cases) + 1):
        world.decides()
    assert told.result() == 2
    rows = Effect.objects.filter(run__team=world.team).order_by("pk")
    assert [(row.status, row.error) for row in rows][: len(cases)] == list(cases.values())
    assert [*rows][-1].status == "done"


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
def test_questions_are_answered_while_the_program_waits_and_the_gate_stays_open(world: World, program: Program) -> None:
    answer = "{ if (q.text === 'Who?') throw new Error('no idea'); return `${q.by}: ${q.text} Because.`; }"
    told = wires(program, world, on_question=f"(q) => {answer}")
    gate = world.gate()
    for text in ("Why?", "Who?"):
        questions.ask(gate, by=ann(world.team), text=text, key=text)
    until(lambda: [each for each in thread.of_gate(gate) if each.by_agent][1:], what="it answers both")
    assert [(each.kind, each.text) for each in thread.of_gate(gate) if each.by_agent] == [
        ("gate.answered", "Ann Okafor: Why? Because."), ("gate.unanswered", "Error: no idea"),
    ]  # fmt: skip
    world.decides()
    assert told.result() == {"id": "tx_1"}


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
def test_questions_are_answered_and_leave_no_run_in_the_queue(web: str, program: Program) -> None:
    world = World(web)
    told = program(
        world,
        """
        const said = await hp.ask("deploy", { version: "4.2" }, { title: "Deploy 4.2 now?", respond: true });
        const pending = await hp.defer("colour", {}, { askOnly: true, respond: true });
        write("pending", pending);
        return [said, await hp.said(pending.id)];
        """,
    )
    gate = world.decides("edit", arguments={"deploy": {"version": "4.1"}}, comment="Not that one.")
    pending = told.wrote("pending")
    assert pending["url"] == f"{web}/gates/{pending['id']}/"
    world.decides("", verdicts={"colour": {"verdict": "respond", "response": "Green."}})
    said, colour = told.result()
    assert (said["arguments"], said["changes"]) == ({"version": "4.1"}, ['version is now "4.1"'])
    assert said["decision"] | {"verdict": "edit", "by": "Ann Okafor", "comment": "Not that one."} == said["decision"]
    assert colour["answer"] == "Green."
    for run in (gate.run_id, pending["run"]):
        assert Run.objects.get(pk=run).status == "completed"
        assert not Effect.objects.filter(run=run).exists()


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
    with pytest.raises(Thrown, match="call resumeEach"):
        program(world, f"return hp.resume({gates[1].pk}, {{}}, () => 1);").result()
    decide(gates[0])
    done = program(world, f"return hp.resume({gates[0].pk}, {{}}, (call) => call.arguments.to);").result()
    assert (done, ended(gates[0].run_id)["wire_result"]) == ("ACME", "ACME")
    assert program(world, "return hp.deferAll([]);").result() == []
    with pytest.raises(Thrown, match="one agent and team"):
        program(world, f"{ASKS_ALL} return hp.deferAll([all[0], {{ ...all[1], agent: 'another' }}]);").result()


HUGE = 2**70 + 1


PAYS = """
return hp.approve("pay", %s, { pinned: ["account"], ...%s }, (call) => {
  const { account, rate } = call.arguments;
  write("call", { kinds: [typeof account, typeof rate], text: call.text, account, rate });
  return call.arguments;
});
"""


def test_no_digit_is_lost_on_the_way_to_people_and_back(world: World, program: Program) -> None:
    told = program(world, PAYS % (f'{{ account: {HUGE}n, rate: new Exact("1.0"), small: 9007199254740991 }}', "{}"))
    gate = world.gate()
    asked = gate.asked.actions[0].arguments
    assert (asked, type(asked["rate"])) == ({"account": HUGE, "rate": 1.0, "small": 2**53 - 1}, float)
    edited = {"account": HUGE + 2, "rate": 2.0, "small": 2**53 - 1}
    world.decides("edit", arguments={"pay": edited})
    assert told.result()["account"] == HUGE + 2
    call = told.wrote("call")
    assert call["kinds"] == ["bigint", "number"]
    assert call["text"] == f'{{"account":{HUGE + 2},"rate":2.0,"small":9007199254740991}}'
    assert Effect.objects.get(run=gate.run_id).returned["pay_result"]["account"] == HUGE + 2


def test_texts_are_read_and_written_without_loss_and_what_json_cannot_hold_is_not_asked(
    world: World, program: Program
) -> None:
    texts = ["{}", "[]", '"a\\"b"', "12345678901234567890", "-0.5", '{"a":[1,{"b":"]}"}],"c":null}']
    again = f"{json.dumps(texts)}.map((text) => holdpoint.stringify(holdpoint.parse(text)))"
    asks = 'hp.approve("pay", { rate }, {}, () => 1).catch((error) => `${error.name}: ${error.message}`)'
    told = program(world, f"return Promise.all([...{again}, ...[NaN, Infinity, -Infinity].map((rate) => {asks})]);")
    numbers = ["NaN", "Infinity", "-Infinity"]
    assert told.result() == [*texts, *[f"TypeError: rate is {number}, which JSON cannot hold." for number in numbers]]
    assert not Gate.objects.filter(team=world.team).exists()


def test_a_secret_is_handed_out_to_the_program_and_compared_where_it_is_none(world: World, program: Program) -> None:
    properties = {"account": {"type": "string", "writeOnly": True}, "rate": {"type": "integer"}}
    schema = json.dumps({"schema": {"type": "object", "properties": properties}})
    told = program(world, PAYS % ('{ account: "DE02", rate: 1 }', schema))
    world.decides()
    assert told.result() == {"account": "DE02", "rate": 1}


ALTERED = """
const real = globalThis.fetch;
globalThis.fetch = async (address, more) => {
  const answer = await real(address, more);
  if (!RegExp(%s).test(address)) return answer;
  return new Response((await answer.text()).replaceAll(%s, %s), answer);
};
return hp.approve("wire", WIRE, {}, () => write("did", 1));
"""


def test_an_edit_that_the_outcome_does_not_tell_is_not_done(web: str, program: Program) -> None:
    """What a key had found was not compared with what the program asks: the server's binding stood alone."""
    world, was = World(web), '"edits":{"wire":['
    told = program(world, ALTERED % (json.dumps("/outcome"), json.dumps(was), json.dumps('"edits":{"other":[')))
    gate = world.decides("edit", arguments={"wire": {**WIRE, "amount": "100.00"}})
    with pytest.raises(Thrown, match=f"Altered: People were asked at gate {gate.pk} about other arguments of wire"):
        told.result()
    assert "did" not in told.service.log
    assert Effect.objects.get(run=gate.run_id).status == "failed"


def test_what_people_edited_is_theirs_and_what_the_caller_changes_meanwhile_is_not_asked(
    world: World, program: Program
) -> None:
    """1e+20 was written again as an integer, which differs; and the object that the caller holds was compared."""
    asks = 'const args = { rate: 1.5, note: "a", to: ["a", "b", "c"], cc: { x: 1, "y/z": 2 } };'
    told = program(
        world,
        f"{asks} const told = hp.approve('set', args, {{}}, (call) => call.text);"
        " setTimeout(() => { args.note = 'b'; }, 0); return told;",
    )
    edited = {"rate": 1e20, "note": "a", "to": ["b", "c", "d"], "cc": {"x": 3, "y/z": 4}}
    world.decides("edit", arguments={"set": edited})
    assert told.result() == '{"cc":{"x":3,"y/z":4},"note":"a","rate":1e+20,"to":["b","c","d"]}'


@pytest.mark.parametrize(
    ("place", "was", "becomes"),
    [
        ("/effects$", '"120.00"', '"920.00"'),  # what the program gets
        ("/gates/[0-9]+$", '"seen":"', '"seen":"0'),  # what people decided on
        pytest.param("/gates/[0-9]+$", '"120.00"', '"920.00"', marks=pytest.mark.long),  # the card
    ],
)
def test_what_differs_from_what_people_approved_is_not_done(
    world: World, program: Program, place: str, was: str, becomes: str
) -> None:
    told = program(world, ALTERED % (json.dumps(place), json.dumps(was), json.dumps(becomes)))
    gate = world.decides()
    with pytest.raises(Thrown, match="Altered: The arguments of wire are not those that people approved at gate"):
        told.result()
    assert "did" not in told.service.log
    assert Effect.objects.get(run=gate.run_id).status == "failed"
