"""A program dies or an answer is lost: another process or try goes on, and nothing happens twice."""

from __future__ import annotations

import json

import pytest

from agents.models import Effect
from agents.moves import rewind
from approvals.models import Gate
from checkpoints.models import Run
from tests.agents.remote.outside_program import decide
from tests.clients.losing_proxy import Refusal, Start, losing_first
from tests.clients.mcp.test_permission_prompt import NO_SCOPE, OLDER, is_kept_back, lacking
from tests.clients.typescript.program import Program, Running, Thrown, wires
from tests.clients.world import World, ended
from tests.factories import ann
from tests.factories.tokens import make_token
from tests.harness.services import free_port
from tests.harness.waiting import until

# It begins what was allowed and stays with it until somebody else has it; then it says that it was done after all.
STAYS = """
const { id } = await hp.defer("wire", WIRE, { idempotent: %s });
return hp.resume(id, {}, async (call) => {
  write("begun", { key: call.key, gate: id });
  const alive = setInterval(() => undefined, 1000);
  await new Promise((lost) => call.signal.addEventListener("abort", lost));
  clearInterval(alive);
  write("lost", call.signal.reason.code);
  return { id: "tx_late" };
});
"""
RESUMES = "return hp.resume(%d, { timeout: %d }, (call) => { write('call', call); return { id: 'tx_2' }; });"


def begun(world: World, program: Program, *, idempotent: bool) -> tuple[int, str, Running]:
    """A gate that was allowed, the key, and a process that has begun what it allowed."""
    running = program(world, STAYS % str(idempotent).lower())
    world.decides()
    said = running.wrote("begun")
    return said["gate"], said["key"], running


def asked(world: World, program: Program, resumes: str) -> Thrown:
    """Resume until people are asked what became of it: once the dead one's lease is over."""

    def look() -> Thrown | None:
        with pytest.raises(Thrown) as thrown:
            program(world, resumes).result()
        return thrown.value if thrown.value.kind == "Unknown" else None

    found = until(look, what="people are asked what became of it")
    assert found is not None
    return found


@pytest.mark.long
def test_what_may_not_be_sent_twice_is_asked_about(world: World, program: Program) -> None:
    gate, _, process = begun(world, program, idempotent=False)
    process.service.kill()
    unknown = asked(world, program, RESUMES % (gate, 0))
    assert "Did “wire” happen?" in str(unknown)
    assert "Do not do it again" in str(unknown)
    question = world.gate("recovery")
    assert question.pk == unknown.said["gate"]
    decide(question, "answer", answer={"choice": "happened", "value": {"wire_result": {"id": "tx_seen"}}})
    with pytest.raises(Thrown, match=r"AlreadyDone: wire was already done, once\. Use its result") as done:
        program(world, RESUMES % (gate, 60)).result()
    assert done.value.said["result"] == {"id": "tx_seen"}


@pytest.mark.long
def test_what_may_be_sent_twice_is_handed_out_again_and_who_slept_meanwhile_is_told(
    world: World, program: Program
) -> None:
    gate, key, sleeper = begun(world, program, idempotent=True)
    sleeper.service.pause()
    second = program(world, RESUMES % (gate, 60))
    assert second.result() == {"id": "tx_2"}
    assert (second.wrote("call")["key"], second.wrote("call")["attempts"]) == (key, 2)
    sleeper.service.resume()
    assert sleeper.wrote("lost") in ("stale_token", "run_ended")
    with pytest.raises(Thrown, match="Problem: "):
        sleeper.result()
    assert ended(second.wrote("call")["run"])["wire_result"] == {"id": "tx_2"}
    assert Effect.objects.filter(run__team=world.team).count() == 1


def test_the_same_key_asks_once_and_goes_on_to_the_end(world: World, program: Program) -> None:
    asks = "(timeout) => hp.approve('wire', WIRE, { key: 'invoice-7', timeout }, () => ({ id: 'tx_1' })).catch(said)"
    told = program(world, f"const asks = {asks}; write('still', await asks(0)); return [await asks(9), await asks(0)];")
    still = told.wrote("still")
    gate = world.decides()
    done, again = told.result()
    assert (still["kind"], still["gate"], done) == ("StillOpen", gate.pk, {"id": "tx_1"})
    assert (again["kind"], again["result"], again["run"]) == ("AlreadyDone", {"id": "tx_1"}, gate.run_id)


UNDOES = """
const cancel = ({ arguments: { amount }, result, key }) => { write("cancel", { amount, result, key }); };
return hp.resume(%d, { undo: cancel }, (call) => { write("pay", call); return { id: "tx_2" }; });
"""


@pytest.mark.long
def test_what_people_send_back_is_undone_before_it_is_done_again(world: World, program: Program) -> None:
    first = 'const { id } = await hp.defer("wire", WIRE, { undo: function cancel() {} }); write("gate", id);'
    doing = program(world, f'{first} return hp.resume(id, {{}}, (call) => ({{ id: "tx_1", key: call.key }}));')
    gate = doing.wrote("gate")
    world.decides("edit", arguments={"wire": {"to": "ACME", "amount": "80.00"}})
    done = doing.result()
    run = Run.objects.get(gates=gate)
    rewind.rewind(run, to=1, by=ann(world.team))
    unable = program(world, RESUMES % (gate, 60))
    again = world.gate()
    assert again.asked.actions[0].arguments == {"to": "ACME", "amount": "120.00"}
    decide(again, "approve")
    with pytest.raises(Thrown, match=r"ToTakeBack: .*take back what was done under the key \w+ first \(cancel\)"):
        unable.result()
    told = program(world, UNDOES % gate)
    undone = told.wrote("cancel")
    assert (undone["amount"], undone["result"]) == ("80.00", done)
    assert told.result() == {"id": "tx_2"}
    assert len({done["key"], undone["key"], told.wrote("pay")["key"]}) == 3
    rows = Effect.objects.filter(run=run).order_by("pk")
    assert [(each.status, each.undoes_id is not None) for each in rows] == [
        ("undone", False), ("done", True), ("done", False),
    ]  # fmt: skip


def test_an_answer_that_is_lost_does_nothing_twice(proxy: Start, program: Program) -> None:
    lost = ("/effects", "/gates", "/claims", "/results")
    way = proxy(losing_first(*lost))
    world = World(way.url)
    told = wires(program, world)
    gate = world.decides()
    told.result()
    assert ended(gate.run_id)["wire_result"] == {"id": "tx_1"}
    for what in lost:
        once, again = way.posts(what)[:2]
        assert once == again
        assert once.key
    assert Gate.objects.filter(team=world.team).count() == 1
    row = Effect.objects.get(run=gate.run_id)
    assert (row.status, row.attempts, row.key) == ("done", 1, told.wrote("call")["key"])


@pytest.mark.long
def test_a_report_whose_answer_never_comes_is_followed_by_no_other(proxy: Start, program: Program) -> None:
    """The server has it: another report under another key would be of a result that is known."""
    way = proxy(lambda sent: "lose" if sent.path.endswith("/results") else "")
    world = World(way.url)
    told = wires(program, world, patience=0.5)
    gate = world.decides()
    with pytest.raises(Thrown, match="Unreachable"):
        told.result()
    assert len({each.key for each in way.posts("/results")}) == 1
    assert Effect.objects.get(run=gate.run_id).status == "done"


def test_what_lasts_too_long_is_said_plainly_and_without_the_token(program: Program) -> None:
    world = World(f"http://127.0.0.1:{free_port()}")
    told = program(world, 'console.log(hp); return hp.defer("wire", WIRE);', patience=0.3)
    with pytest.raises(Thrown, match=r"Unreachable: No answer within 0\.3 s: ECONNREFUSED"):
        told.result()
    assert world.token not in told.service.log


REFUSALS: list[Refusal | str] = [
    (429, "0"), (503, "0"), "",  # what may pass is tried again
    (500, ""), (502, "junk"), "",
    (429, "Thu, 01 Jan 1970 00:00:00 GMT"), "",  # by the server's clock: that of the client may be wrong by hours
    (429, "3600"),  # for longer than there is patience
    (429, "0", "rejected_before"),
    (302, "0"),
]  # fmt: skip


def test_what_may_pass_is_tried_again_under_the_same_key_and_what_may_not_is_told_at_once(
    proxy: Start, program: Program
) -> None:
    fates = list(REFUSALS)
    way = proxy(lambda sent: fates.pop(0) if sent.path.endswith("/gates") else "")
    code = """
    const told = [];
    for (const at of Array(6).keys()) {
      if (at === 2) Date.now = () => -864e5;
      told.push(await hp.defer("wire", WIRE).then(() => "asked", (error) => `${error.name}: ${error.message}`));
    }
    return told;
    """
    told = program(World(way.url), code).result()
    assert told[:3] == ["asked"] * 3
    assert [each.split("\n")[0] for each in told[3:5]] == [
        "Problem: Later. (429)", "Problem: Later. (429 rejected_before)",
    ]  # fmt: skip
    assert told[5].startswith("BadAnswer: The answer (302) is not from Holdpoint. Check the address")
    keys = [each.key for each in way.posts("/gates")]
    assert [len(set(part)) for part in (keys[:3], keys[3:6], keys[6:8], keys[8:])] == [1, 1, 1, 3]


def test_a_refusal_is_final_and_settings_and_keys_that_cannot_be_right_are_not_sent(
    proxy: Start, program: Program
) -> None:
    """A key with a space was sent, and refused by the server."""
    way = proxy(lambda sent: "")
    told = program(
        World(way.url),
        """
        const made = (settings) => { try { return new Holdpoint(settings); } catch (error) { return said(error); } };
        const keys = ["two words", "Ä", "x".repeat(201)];
        return [
          await made({ token: "hp_none" }).defer("wire", WIRE).catch(said),
          await hp.api.get("/api/gates/{gate_id}", { path: { gate_id: 2 ** 40 } }).catch(said),
          await hp.defer("no name", {}).catch(said),
          made({ url: "holdpoint.example.com" }), made({ token: "hp_a\\nX-More: 1" }),
          ...await Promise.all(keys.map((key) => hp.defer("wire", WIRE, { key }).catch(said))),
        ];
        """,
    ).result()
    bad, missing, invalid = told[:3]
    assert (bad["status"], "not valid" in bad["message"], "No such gate" in missing["message"]) == (401, True, True)
    assert "/actions/0/id: 'no name' is not an identifier" in invalid["message"]
    assert [each["parameter"] for each in invalid["errors"]] == ["/actions/0/id", "/actions/0/tool"]
    assert len(way.seen) == 3
    expected = ["NotConfigured: Give the server's address", "NotConfigured: Give a token"]
    expected += ["TypeError: A key has 1 to 200 printable ASCII characters, and no space"] * 3
    texts = [f"{each['kind']}: {each['message']}" for each in told[3:]]
    assert [text.startswith(words) for text, words in zip(texts, expected, strict=True)] == [True] * 5, texts


def test_what_is_not_handed_out_is_told_with_what_lacks(web: str, proxy: Start, program: Program) -> None:
    """An older server has no such address, and a token may lack the scope."""
    world = World(web)
    scopes = ("runs:start", "runs:read", "gates:read")
    _, token = make_token(world.owner, *scopes, team=world.team, agent=world.agent)
    asks = 'await new Holdpoint(%s).ask("wire", WIRE).catch(said)'
    ways = [json.dumps({"url": proxy(lacking).url}), json.dumps({"token": token})]
    told = program(world, f"return [{', '.join(asks % each for each in ways)}];")
    gates = [world.decides() for _ in ways]
    for refused, gate, words in zip(told.result(), gates, (OLDER, NO_SCOPE), strict=True):
        assert (refused["kind"], refused["gate"]) == ("NotHandedOut", gate.pk)
        assert refused["message"] == words.format(gate=gate.pk)
        assert is_kept_back(gate)
