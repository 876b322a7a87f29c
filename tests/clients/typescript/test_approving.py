"""What people decide is what a program's function gets, text for text, and what it throws is what becomes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.models import Effect
from approvals.gates import closing, questions, thread
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.agents.remote.outside_program import decide
from tests.clients.typescript.program import WIRES, Program, Thrown, wires
from tests.clients.typescript.test_resuming import asked
from tests.clients.world import WIRE, World, ended
from tests.factories import ann
from tests.harness.waiting import until


def test_an_edit_is_what_runs_and_a_no_is_thrown_with_its_words(world: World, program: Program) -> None:
    told = program(world, f"const wires = async () => {{ {WIRES % '{}'} }}; await wires(); return wires();")
    gate = world.decides("edit", arguments={"wire": {**WIRE, "amount": "100.00"}}, comment="A tenth less.")
    call = told.wrote("call")
    assert call["arguments"] == {"to": "ACME", "amount": "100.00"}
    assert call["text"] == '{"amount":"100.00","to":"ACME"}'
    assert call["edits"] == [{"op": "replace", "path": "/amount", "value": "100.00"}]
    assert call["changes"] == ['amount is now "100.00"']
    assert (call["decision"]["by"], call["decision"]["comment"]) == ("Ann Okafor", "A tenth less.")
    assert call["url"] == f"{world.url}/gates/{gate.pk}/"
    refused = world.decides("reject", comment="Not this month")
    with pytest.raises(
        Thrown, match=r"Rejected: Ann Okafor said no to wire: Not this month\. Do not do it another"
    ) as no:
        told.result()
    assert no.value.said | {"by": "Ann Okafor", "reason": "Not this month", "gate": refused.pk} == no.value.said
    assert ended(call["run"])["wire_result"] == {"id": "tx_1"}
    [row] = Effect.objects.filter(run__team=world.team)
    assert (row.status, row.key, row.attempts, row.run_id) == ("done", call["key"], 1, gate.run_id)
    assert gate.asked.actions[0].pinned == ("/amount",)
    assert [each.to_json() for each in gate.asked.actions[0].draws] == [{"kind": "command", "at": "/to"}]


def test_what_cannot_go_on_asks_nobody_and_a_time_or_a_signal_ends_the_waiting(world: World, program: Program) -> None:
    """A time that was no whole number of milliseconds was refused by Node, as it is in all but the longest waits."""
    told = program(
        world,
        """
        const control = new AbortController();
        const closes = { info: () => control.abort(new Error("The chat was closed.")), warn: console.warn };
        return [
          await hp.approve("wire", WIRE, {}).catch(said),
          await hp.approve("wire", WIRE, {}, function* () { yield 1; }).catch(said),
          await hp.approve("wire", WIRE, { timeout: 0.7 }, () => 1).catch(said),
          await new Holdpoint({ log: closes }).approve("wire", WIRE, { signal: control.signal }, () => 1).catch(said),
        ];
        """,
    )
    bare, generator, late, closed = told.result()
    assert "Give a function" in bare["message"]
    assert "yields, so that calling it does nothing" in generator["message"]
    assert (late["kind"], "Resume it by its number later" in late["message"]) == ("StillOpen", True)
    assert closed["message"] == "The chat was closed."
    assert [(each.status, each.pk == late["gate"]) for each in Gate.objects.filter(team=world.team).order_by("pk")] == [
        ("open", True), ("open", False),
    ]  # fmt: skip


def test_what_ends_without_a_decision_is_thrown_as_what_it_is(world: World, program: Program) -> None:
    told = program(
        world,
        """
        const [own, silent] = [await hp.defer("wire", WIRE), await hp.defer("wire", WIRE)];
        await hp.withdraw(own.id, "Not needed.");
        const answered = await hp.defer("wire", WIRE, { respond: true });
        write("silent", silent.id);
        return Promise.all([silent, own, answered].map(({ id }) => hp.resume(id, {}, () => 1).catch(said)));
        """,
    )
    gate = Gate.objects.get(pk=told.wrote("silent"))
    world.decides("", verdicts={"wire": {"verdict": "respond", "response": "Paid by card already."}})
    closing.pass_deadline(gate)
    closing.expire(gate, by=SYSTEM)
    expired, withdrawn, answered = told.result()
    assert (expired["kind"], expired["message"].startswith("Nobody answered")) == ("Expired", True)
    assert (withdrawn["kind"], "Not needed." in withdrawn["message"]) == ("Withdrawn", True)
    assert answered["message"].startswith("Ann Okafor answered instead of wire, which is not done")
    assert (answered["kind"], answered["answer"]) == ("Answered", "Paid by card already.")


def test_what_is_thrown_decides_between_failed_and_unknown(world: World, program: Program) -> None:
    """What a call inside of the work threw was taken for the report's own, and a generator reported as done with {}."""
    yields = (
        "HoldpointError: generator returned a generator and not its result, so it is not reported as done. Return all "
        "that it yields."
    )
    cases = {
        "error": ('throw new Error("line one\\nline two")', "unknown", "Error: line one line two"),
        "text": ('throw "odd"', "unknown", "odd"),
        "inside": ('throw new Unreachable("No answer.")', "unknown", "Unreachable: No answer."),
        "no": ('throw new NotDone("refused at the door")', "failed", "refused at the door"),
        "generator": ("return (async function* () { yield 1; })()", "unknown", yields),
    }
    asks = "".join(
        f'hp.approve("{id}", {{}}, {{}}, () => {{ {does}; }}).catch(said),' for id, (does, *_) in cases.items()
    )
    retries = """
        let tries = 0;
        const work = () => { tries += 1; if (tries === 1) throw new NotDone("503", { retry: true }); return () => 1; };
        const again = async () => {
          const { id } = await hp.defer("again", {});
          await hp.resume(id, {}, work).catch(said);
          await hp.resume(id, {}, work);
        };
    """
    told = program(world, f"{retries} await Promise.all([{asks} again()]); return tries;")
    for _ in (*cases, "again"):
        world.decides()
    assert told.result() == 2
    rows = {row.step: (row.status, row.error) for row in Effect.objects.filter(run__team=world.team)}
    assert rows.pop("again")[0] == "done"
    assert rows == {name: (status, error) for name, (_, status, error) in cases.items()}


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
    leases = set[Any]()

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


def test_several_actions_are_one_gate_and_what_is_refused_or_answered_for_is_not_done(
    world: World, program: Program
) -> None:
    each = "await hp.approveEach(both, quoted, act)"
    told = program(world, f"{ASKS} const first = {each}; return [first, {each}];")
    gate = world.decides("edit", arguments={"wire": {**WIRE, "amount": "1.00"}})
    assert [action.id for action in gate.asked.actions] == ["wire", "mail"]
    assert gate.asked.quotes[0].label == "Marit Ellery"
    assert (told.wrote("wire"), told.wrote("mail")) == ({**WIRE, "amount": "1.00"}, MAIL)
    respond = {"verdict": "respond", "response": "I rang her."}
    world.decides("", verdicts={"wire": {"verdict": "reject", "reason": "Not this month."}, "mail": respond})
    done, not_done = told.result()
    assert done == {"refused": {}, "answers": {}, "results": {"wire": {"did": "wire"}, "mail": {"did": "mail"}}}
    assert ended(gate.run_id)["mail_result"] == {"did": "mail"}
    refused = not_done["refused"]["wire"]
    assert (refused["by"], refused["reason"]) == ("Ann Okafor", "Not this month.")
    assert not_done["answers"] == {"mail": "I rang her."}
    assert {row.run_id for row in Effect.objects.filter(run__team=world.team)} == {gate.run_id}


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
const rate = new Exact("1.0");
const args = { account: %dn, rate, small: 9007199254740991, secret: "s", note: "a", to: ["a", "b"], cc: { "y/z": 2 } };
const schema = { type: "object", properties: { secret: { type: "string", writeOnly: true } } };
const told = hp.approve("pay", args, { pinned: ["account"], schema }, (call) => {
  write("call", { kinds: [typeof call.arguments.account, typeof call.arguments.rate], text: call.text });
  return call.arguments;
});
setTimeout(() => { args.note = "b"; }, 0);
const done = await told;
const asks = [NaN, Infinity, -Infinity].map((rate) => hp.approve("pay", { rate }, {}, () => 1).catch(said));
return [done, %s.map((text) => holdpoint.stringify(holdpoint.parse(text))), await Promise.all(asks)];
"""


def test_no_digit_is_lost_on_the_way_to_people_and_back_and_what_json_cannot_hold_is_not_asked(
    world: World, program: Program
) -> None:
    """1e+20 was written again as an integer, which differs; and what the caller changed meanwhile was compared."""
    texts = ["{}", "[]", '"a\\"b"', "12345678901234567890", "-0.5", '{"a":[1,{"b":"]}"}],"c":null}']
    told = program(world, PAYS % (HUGE, json.dumps(texts)))
    gate = world.gate()
    asked = gate.asked.actions[0].arguments
    same = {"small": 2**53 - 1, "secret": "s"}
    assert asked == {"account": HUGE, "rate": 1.0, "note": "a", "to": ["a", "b"], "cc": {"y/z": 2}, **same}
    assert type(asked["rate"]) is float
    edited = {"account": HUGE + 2, "rate": 1e20, "note": "a", "to": ["b", "c", "d"], "cc": {"x": 3, "y/z": 4}, **same}
    world.decides("edit", arguments={"pay": edited})
    done, again, refused = told.result()
    assert (done["account"], done["secret"]) == (HUGE + 2, "s")
    assert told.wrote("call") == {
        "kinds": ["bigint", "number"],
        "text": f'{{"account":{HUGE + 2},"cc":{{"x":3,"y/z":4}},"note":"a","rate":1e+20,"secret":"s",'
        '"small":9007199254740991,"to":["b","c","d"]}',
    }
    assert Effect.objects.get(run=gate.run_id).returned["pay_result"]["account"] == HUGE + 2
    assert again == texts
    numbers = ["NaN", "Infinity", "-Infinity"]
    assert [each["message"] for each in refused] == [f"rate is {each}, which JSON cannot hold." for each in numbers]
    assert Gate.objects.filter(team=world.team).count() == 1


ALTERED = [
    ("/effects$", '"120.00"', '"920.00"'),  # what the program gets
    ("/gates/[0-9]+$", '"seen":"', '"seen":"0'),  # what people decided on
    ("/gates/[0-9]+$", '"120.00"', '"920.00"'),  # the card
    # The edits: what a key had found was not compared with what the program asks.
    ("/outcome", '"edits":{"wire":[', '"edits":{"other":['),
]
ALTERS = """
const [real, told] = [globalThis.fetch, []];
for (const [place, was, becomes] of %s) {
  globalThis.fetch = async (address, more) => {
    const answer = await real(address, more);
    if (!RegExp(place).test(address)) return answer;
    return new Response((await answer.text()).replaceAll(was, becomes), answer);
  };
  told.push(await hp.approve("wire", WIRE, {}, () => write("did", 1)).catch(said));
}
return told;
"""


def test_what_differs_from_what_people_approved_is_not_done(world: World, program: Program) -> None:
    told = program(world, ALTERS % json.dumps(ALTERED))
    for _ in ALTERED[:3]:
        world.decides()
    gate = world.decides("edit", arguments={"wire": {**WIRE, "amount": "100.00"}})
    *others, edited = told.result()
    not_those = "The arguments of wire are not those that people approved at gate"
    assert [(each["kind"], not_those in each["message"]) for each in others] == [("Altered", True)] * 3
    assert edited["kind"] == "Altered"
    assert f"People were asked at gate {gate.pk} about other arguments of wire" in edited["message"]
    assert "did" not in told.service.log
    assert [each.status for each in Effect.objects.filter(run__team=world.team)] == ["failed"] * 4
