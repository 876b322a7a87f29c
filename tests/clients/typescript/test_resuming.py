"""A program dies: another process goes on by the gate's number, and nothing happens twice."""

from __future__ import annotations

import pytest

from agents.models import Effect
from agents.moves import rewind
from checkpoints.models import Run
from tests.agents.remote.outside_program import decide
from tests.clients.typescript.program import Program, Running, Thrown
from tests.clients.typescript.test_approving import wires
from tests.clients.world import World, ended
from tests.factories import ann
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
def test_what_may_be_sent_twice_is_handed_out_again_under_its_key(world: World, program: Program) -> None:
    gate, key, process = begun(world, program, idempotent=True)
    process.service.kill()
    second = program(world, RESUMES % (gate, 60))
    assert second.result() == {"id": "tx_2"}
    assert (second.wrote("call")["key"], second.wrote("call")["attempts"]) == (key, 2)
    assert Effect.objects.filter(run__team=world.team).count() == 1


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
def test_what_did_not_happen_is_done_after_people_said_so(world: World, program: Program) -> None:
    gate, key, process = begun(world, program, idempotent=False)
    process.service.kill()
    asked(world, program, RESUMES % (gate, 0))
    decide(world.gate("recovery"), "answer", answer={"choice": "not_happened"})
    second = program(world, RESUMES % (gate, 60))
    assert second.result() == {"id": "tx_2"}
    assert second.wrote("call")["key"] != key
    assert ended(second.wrote("call")["run"])["wire_result"] == {"id": "tx_2"}


@pytest.mark.long
def test_a_process_that_slept_for_too_long_is_told_and_changes_nothing(world: World, program: Program) -> None:
    gate, _, sleeper = begun(world, program, idempotent=True)
    sleeper.service.pause()
    second = program(world, RESUMES % (gate, 60))
    assert second.result() == {"id": "tx_2"}
    sleeper.service.resume()
    assert sleeper.wrote("lost") in ("stale_token", "run_ended")
    with pytest.raises(Thrown, match="Problem: "):
        sleeper.result()
    assert ended(second.wrote("call")["run"])["wire_result"] == {"id": "tx_2"}


def test_the_same_key_asks_once_and_goes_on_to_the_end(world: World, program: Program) -> None:
    keyed = '{ key: "invoice-7", timeout: %d }'
    with pytest.raises(Thrown, match="StillOpen"):
        wires(program, world, keyed % 0).result()
    gate = world.decides()
    assert wires(program, world, keyed % 0).result() == {"id": "tx_1"}
    with pytest.raises(Thrown, match="AlreadyDone") as done:
        wires(program, world, keyed % 0).result()
    assert (done.value.said["result"], done.value.said["run"]) == ({"id": "tx_1"}, gate.run_id)


@pytest.mark.long
def test_what_people_sent_back_is_asked_again_and_found_by_the_first_number(world: World, program: Program) -> None:
    """A program that died while it waited for the second answer was told of the first decision."""
    draws = '{ draws: [{ kind: "command", at: "/to" }] }'
    first = program(world, f'return (await hp.defer("wire", WIRE, {draws})).id;').result()
    gate = world.decides()
    rewind.rewind(Run.objects.get(pk=gate.run_id), to=1, by=ann(world.team))
    waiting = program(world, RESUMES % (first, 60))
    again = world.gate()
    assert again.pk != first
    assert again.asked.actions[0].draws == gate.asked.actions[0].draws != ()
    waiting.service.kill()
    world.decides("edit", arguments={"wire": {"to": "ACME", "amount": "90.00"}})
    second = program(world, RESUMES % (first, 60))
    assert second.result() == {"id": "tx_2"}
    call = second.wrote("call")
    assert (call["gate"], call["changes"]) == (again.pk, ['amount is now "90.00"'])


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
