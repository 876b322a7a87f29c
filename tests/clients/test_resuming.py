"""A program dies, or an answer is lost: another process or try goes on, and nothing happens twice."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from holdpoint import AlreadyDone, BadToken, Holdpoint, KeyReused, StillOpen, Unknown, Unreachable

from agents.models import Effect
from agents.moves import rewind
from approvals.models import Gate
from checkpoints.models import Checkpoint, Run
from tests.agents.remote.outside_program import decide
from tests.clients.losing_proxy import Start, losing_first
from tests.clients.world import WIRE, World, ended, wires
from tests.conftest import Starter
from tests.factories import ann
from tests.harness.services import Service, free_port
from tests.harness.session import ROOT
from tests.harness.waiting import PATIENCE, until


@pytest.mark.long
def test_a_script_elsewhere_is_killed_while_it_waits_and_goes_on_with_the_edit(
    world: World, start_service: Starter
) -> None:
    words = [sys.executable, str(ROOT / "clients" / "python" / "examples" / "approve.py")]
    first = start_service("script", words, world.python_env)
    number = int(first.says(r"gate \d+").split()[1])
    first.kill()
    gate = world.decides("edit", arguments={"wire": {"to": "ACME Ltd", "amount": "100.00"}}, comment="A tenth less.")
    assert gate.pk == number
    second = start_service("script", [*words, str(number)], world.python_env)
    second.says(r"done; amount is now '100\.00'")
    row = Effect.objects.get(run=gate.run_id)
    assert f"wiring 100.00 under {row.key[:8]}" in second.log
    assert ended(gate.run_id)["wire_result"] == {"id": "tx_1"}


def begun(world: World, start_service: Starter, *, idempotent: bool) -> tuple[int, Service]:
    """A gate that was allowed, and a process that has begun what it allowed."""
    with world.client() as hp:
        gate = world.allowed(hp, idempotent=idempotent)
    words = [sys.executable, "-m", "tests.clients.dying_program", str(gate)]
    process = start_service("dying", words, world.python_env)
    process.says(r"begun \w+ 1")
    return gate, process


def test_what_may_be_sent_twice_is_handed_out_again_and_who_slept_meanwhile_is_told(
    world: World, start_service: Starter
) -> None:
    gate, sleeper = begun(world, start_service, idempotent=True)
    sleeper.pause()
    with world.client() as hp, hp.resume(gate, timeout=PATIENCE) as call:
        assert call.attempts == 2
        assert f"begun {call.key} 1" in sleeper.log
        sleeper.resume()
        sleeper.says(r"lost This claim token is stale: \S+ has claimed the run")
        sleeper.says(r"StaleToken Whoever has token [0-9]+ has begun this effect since")
        call.done({"id": "tx_4"})
        run = call.run
    assert ended(run)["wire_result"] == {"id": "tx_4"}
    assert Effect.objects.filter(run=run).count() == 1


def asked(world: World, gate: int) -> Unknown:
    """Resume until people are asked what became of it."""

    def look() -> Unknown | None:
        with world.client() as hp:
            try:
                with hp.resume(gate, timeout=0):
                    raise AssertionError("it was begun once more")
            except Unknown as unknown:
                return unknown
            except StillOpen:  # the dead one's lease
                return None

    found = until(look, what="people are asked what became of it")
    assert found is not None
    return found


def test_what_may_not_be_sent_twice_is_asked_about(world: World, start_service: Starter) -> None:
    gate, process = begun(world, start_service, idempotent=False)
    process.kill()
    unknown = asked(world, gate)
    assert "Did “wire” happen?" in str(unknown)
    told = world.runs(lambda hp: hp.resume(gate).__enter__())
    question = world.gate("recovery")
    assert question.pk == unknown.gate
    decide(question, "answer", answer={"choice": "happened", "value": {"wire_result": {"id": "tx_seen"}}})
    with pytest.raises(AlreadyDone) as done:
        told.result(PATIENCE)
    assert done.value.result == {"id": "tx_seen"}
    assert Effect.objects.get(run=done.value.run).attempts == 1


@pytest.mark.long
def test_what_did_not_happen_is_done_after_people_said_so(world: World, start_service: Starter) -> None:
    gate, process = begun(world, start_service, idempotent=False)
    process.kill()
    asked(world, gate)
    decide(world.gate("recovery"), "answer", answer={"choice": "not_happened"})
    with world.client() as hp, hp.resume(gate, timeout=PATIENCE) as call:
        assert f"begun {call.key} 1" not in process.log
        call.done({"id": "tx_3"})
        run = call.run
    assert ended(run)["wire_result"] == {"id": "tx_3"}


@pytest.mark.long
def test_an_old_gates_number_finds_the_gate_that_approved_what_is_done(world: World) -> None:
    with world.client() as hp:
        first = hp.approve.defer("wire", WIRE)
        world.decides()
        rewind.rewind(Run.objects.get(pk=first.run), to=1, by=ann(world.team))
        with pytest.raises(StillOpen):
            hp.resume(first.id, timeout=0.0)
        second = world.decides("edit", arguments={"wire": {**WIRE, "amount": "100.00"}}, comment="A tenth less.")
    with world.client() as hp, hp.resume(first.id, timeout=PATIENCE) as call:
        assert (call.gate, call.url) == (second.pk, f"{world.url}/gates/{second.pk}/")
        assert (call.changes, call.decision.comment) == (["amount is now '100.00'"], "A tenth less.")
        call.done()


def test_words_that_vary_leave_an_approved_call_approved(world: World) -> None:
    """A model worded the same call otherwise after a restart, the key was refused, and the approved call never ran."""
    with world.client() as hp:
        asked = hp.approve.defer("wire", WIRE, title="Pay invoice 7", summary="It is due.", key="invoice-7")
        gate = world.decides("edit", arguments={"wire": {**WIRE, "amount": "100.00"}})
        other: dict[str, Any] = {"title": "Pay ACME", "reasons": ["Due"], "risk": "high", "pinned": ["amount"]}
        with hp.approve("wire", WIRE, key="invoice-7", timeout=PATIENCE, **other) as call:
            assert (call.gate, call.arguments["amount"]) == (asked.id, "100.00")
            call.done({"id": "tx_1"})
        with pytest.raises(AlreadyDone) as done, hp.approve("wire", WIRE, key="invoice-7", timeout=0.0):
            raise AssertionError("it was done twice")
        assert done.value.result == {"id": "tx_1"}
        for more in ({"policy": "other"}, {"state": {"a": 1}}, {"undo": "cancel"}, {"tool": "pay"}):
            with pytest.raises(KeyReused):
                hp.approve.defer("wire", WIRE, key="invoice-7", **more)
        for asks, arguments in ((hp.ask, WIRE), (hp.approve, {**WIRE, "amount": "920.00"})):
            with pytest.raises(KeyReused):
                asks.defer("wire", arguments, key="invoice-7")
        words = hp.ask.defer("deploy", title="Deploy 4.2 now?", key="deploy")  # which are what is asked
        assert hp.ask.defer("deploy", title="Deploy 4.2 now?", key="deploy") == words
        with pytest.raises(KeyReused):
            hp.ask.defer("deploy", title="Deploy 4.3 now?", key="deploy")
    assert gate.asked.title == "Pay invoice 7"


def test_a_question_under_a_key_that_was_answered_says_when(world: World) -> None:
    """A program that asked each night under one key read the first night's approval as if it were a new one."""
    with world.client() as hp:
        first = hp.ask.defer("deploy", WIRE, key="deploy")
        world.decides()
        assert hp.ask("deploy", WIRE, key="deploy").told_at is None
        again = hp.ask("deploy", WIRE, key="deploy")
    assert (again.gate, again.arguments, again.told_at is None) == (first.id, WIRE, False)


def test_an_answer_that_is_lost_does_nothing_twice(proxy: Start) -> None:
    lost = ("/effects", "/gates", "/claims", "/results")
    way = proxy(losing_first(*lost))
    world = World(way.url)
    told = world.runs(wires)
    world.decides()
    got = told.result(PATIENCE)
    assert ended(got["run"])["wire_result"] == {"id": "tx_1"}
    for what in lost:
        once, again = way.posts(what)[:2]
        assert once == again
        assert once.key
    assert Gate.objects.filter(team=world.team).count() == 1
    row = Effect.objects.get(run=got["run"])
    assert (row.status, row.attempts, row.key) == ("done", 1, got["key"])
    assert Checkpoint.objects.filter(run=got["run"]).count() == 3


def test_a_report_whose_answer_never_comes_is_followed_by_no_other(proxy: Start) -> None:
    """The server has it: another report under another key would be of a result that is known."""
    way = proxy(lambda sent: "lose" if sent.path.endswith("/results") else "")
    world = World(way.url)
    told = world.runs(wires, patience=0.5)
    gate = world.decides()
    assert isinstance(told.exception(PATIENCE), Unreachable)
    assert len({each.key for each in way.posts("/results")}) == 1
    assert Effect.objects.get(run=gate.run_id).status == "done"


def test_a_token_is_in_no_refusal_and_in_no_log(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    with world.client() as hp:
        pending = hp.approve.defer("wire", WIRE, title="Pay invoice 7")
        world.decides()
        with hp.resume(pending.id, timeout=PATIENCE) as call:
            assert call.url == pending.url == f"{world.url}/gates/{pending.id}/"
            call.done()
    assert "httpcore" in caplog.text
    assert f"Gate {pending.id} asks: Pay invoice 7. {pending.url}" in caplog.messages
    assert world.token not in caplog.text
    with Holdpoint(world.url, "hp_none") as hp, pytest.raises(BadToken, match="not valid") as bad:
        hp.approve.defer("wire")
    assert (bad.value.status, bad.value.code) == (401, "")
    assert "hp_none" not in str(bad.value) + repr(bad.value)


def test_what_lasts_too_long_is_said_plainly_and_without_the_token() -> None:
    world = World(f"http://127.0.0.1:{free_port()}")
    with world.client(patience=0.3) as hp, pytest.raises(Unreachable, match=r"No answer within 0\.3 s") as lost:
        hp.gate(1)
    assert world.token not in repr(lost.value) + str(lost.value.__cause__) + repr(hp) + repr(hp._io.client.headers)
    assert lost.value.__cause__ is None
