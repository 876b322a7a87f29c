"""An agent with a plan of its own works with the client, from its start to its end."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from holdpoint import Action, Card, Holdpoint, Step, Write, errors
from holdpoint import Run as HeldRun

from agents.waits import signals
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from checkpoints.store import claims
from tests.agents.remote.outside_program import ACTION, SCHEMA, STEPS
from tests.clients.world import WIRE, World, ended
from tests.harness import horizon
from tests.harness.waiting import PATIENCE, until

PLAN = [Step(**each) for each in STEPS]
CARD = Card(title="Wire 120.00", risk="high", actions=[Action(**ACTION)])
INPUT: dict[str, Any] = {"invoice": {"number": 7}, "log": ["a", "b"]}


def pays(hp: Holdpoint, agent: str) -> int:
    hp.register("1", PLAN, agent=agent, state=SCHEMA)
    run = hp.start(INPUT, agent=agent, title="Invoice 7")
    assert run.claim().next.step == "draft"
    assert run.state["invoice"] == {"number": 7}
    turn = run.save("draft", set={"payment": WIRE})
    assert (turn.next.kind, turn.next.step) == ("gate", "review")
    assert run.ask("review", CARD).status == "waiting"
    outcome = run.wait()
    assert outcome.edits == {"wire": [{"op": "replace", "path": "/amount", "value": "100.00"}]}
    assert run.claim().next.kind == "effect"
    effect = run.begin("wire")
    assert run.state["payment"] == {"to": "ACME", "amount": "100.00"}
    assert run.done(effect, {"receipt": {"key": effect.key}}).next.step == "report"
    assert run.save("report", set={"summary": "Paid."}, next_step="").status == "completed"
    assert [each.step for each in run.checkpoints().items] == ["report", "wire", "review", "draft", "input"]
    assert run.checkpoint(2).state["payment"] == WIRE
    assert run.diff(2, 3)[-1] == {"op": "replace", "path": "/payment/amount", "value": "100.00"}
    assert (run.read().status, run.gate()) == ("completed", None)
    return run.id


def test_a_run_goes_from_its_start_to_its_end(world: World) -> None:
    told = world.runs(lambda hp: pays(hp, world.agent))
    world.decides("edit", arguments={"wire": {**WIRE, "amount": "100.00"}})
    state = ended(told.result(PATIENCE))
    assert (state["summary"], state["payment"]["amount"]) == ("Paid.", "100.00")


LOGS: list[dict[str, Any]] = [{"name": "write", "writes": ["log", "summary"], "jumps": ["write"], "ends": True}]


def logging(hp: Holdpoint, world: World) -> HeldRun:
    hp.register("logs", [Step(**each) for each in LOGS], agent=world.agent, state=SCHEMA)
    run = hp.start(INPUT, agent=world.agent)
    run.claim()
    return run


def test_a_start_has_a_key_and_a_program_waits_for_a_signal_and_reads_each_once(world: World) -> None:
    """Of a start under a key the title may vary, and the input may not."""
    with world.client() as hp:
        hp.register("1", PLAN, agent=world.agent, state=SCHEMA, signals={"delivered": {"type": "object"}})
        run = hp.start(INPUT, agent=world.agent, title="Invoice 7", key="invoice-7")
        again = hp.start(INPUT, agent=world.agent, title="Pay ACME", thread="chat-7", key="invoice-7")
        assert (again.id, again.read().title) == (run.id, "Invoice 7")
        with pytest.raises(errors.KeyReused):
            hp.start({**INPUT, "log": []}, agent=world.agent, title="Invoice 7", key="invoice-7")
        assert hp.signals(run.id, "delivered").items == []
        waiting = world.runs(lambda its: its.signals(run.id, "delivered", wait=60).items)
        row = Run.objects.select_related("plan").get(pk=run.id)
        signals.send(row, "delivered", {"by": "ann"}, key="k", by=SYSTEM)
        (first,) = waiting.result(PATIENCE)
        assert (first.name, first.value) == ("delivered", {"by": "ann"})
        assert hp.signals(run.id, "delivered", after=first.id).items == []


def test_a_list_is_appended_to_and_spliced_and_a_state_sent_whole(world: World) -> None:
    with world.client() as hp:
        run = logging(hp, world)
        run.save("write", append={"log": ["c", "d"]}, next_step="write")
        run.save("write", splice={"log": (1, 2, ["B"])}, set={"summary": "s"}, next_step="write")
        state = run.checkpoint(3).state
        assert (state["log"], state["summary"]) == (["a", "B", "d"], "s")
        run.save_state("write", {**state, "log": ["z"]}, next_step="write")
        assert run.checkpoint(4).state["log"] == ["z"]
        several = [Write(step="write", append={"log": [each]}, next_step="write") for each in ("y", "x")]
        assert run.save_all(several).seq == 6
        assert [run.checkpoint(seq).state["log"] for seq in (5, 6)] == [["z", "y"], ["z", "y", "x"]]
        with pytest.raises(errors.OutOfTurn):
            run.save("draft", set={"summary": "s"})
        assert run.end().status == "completed"
        with pytest.raises(errors.RunEnded):
            run.claim()


def test_a_run_is_let_go_of_and_fails_for_a_reason(world: World) -> None:
    with world.client(lease=60) as hp:
        run = logging(hp, world)
        with pytest.raises(errors.NotClaimable, match="has the run"):
            hp.run(run.id).claim()
        assert run.release().status == "queued"
        other = hp.run(run.id)
        with pytest.raises(errors.HoldpointError, match="Claim run"):
            other.release()
        other.claim()
        with pytest.raises(errors.StaleToken):
            run.save("write", next_step="write")
        assert other.fail("write", "no disk").status == "waiting"
        gate = other.gate()
        assert gate is not None
        assert gate.kind == "recovery"
        assert gate.card["summary"].endswith("no disk")


def test_heartbeats_hold_a_run_for_longer_than_its_lease_and_tell_when_it_is_lost(world: World) -> None:
    claimed, stop = threading.Event(), threading.Event()
    lost: list[errors.HoldpointError] = []

    def program(hp: Holdpoint) -> int:
        run = logging(hp, world)
        run.release()
        run.claim(lease=1, on_lost=lost.append)
        claimed.set()
        assert stop.wait(PATIENCE)
        with pytest.raises(errors.StaleToken, match="has claimed the run"):
            run.check()
        return run.id

    told = world.runs(program)
    assert claimed.wait(PATIENCE)
    row = Run.objects.get(team=world.team)
    first = row.lease_until
    assert first is not None
    until(lambda: beaten(row, first), what="the lease is begun anew, twice")

    def taken() -> claims.Claim | None:
        Run.objects.filter(pk=row.pk).update(lease_until=row.created_at)
        return claims.claim(row.pk, plan_ids=[row.plan_id], worker="box:2", lease=60, by=SYSTEM)

    until(taken, what="another claims it before a heartbeat comes in between")
    until(lambda: lost, what="the heartbeats tell that the run is lost")
    stop.set()
    assert told.result(PATIENCE) == row.pk
    assert [type(each) for each in lost] == [errors.StaleToken]


def beaten(row: Run, first: Any) -> bool:
    """Whether the run is held for longer than one lease from the first."""
    row.refresh_from_db()
    return row.lease_until is not None and (row.lease_until - first).total_seconds() > 1.0


def test_events_are_read_after_a_cursor(world: World) -> None:
    with world.client() as hp:
        since = hp.events("now").next
        gate = hp.approve.defer("wire", WIRE, title="Pay")
        horizon.reached()
        kinds = [(each.kind, each.subject) for each in hp.events(since).items]
        assert ("gate.opened", f"gate:{gate.id}") in kinds
        assert hp.outcome(gate.id).open
        assert hp.gate(gate.id).actions == ["wire"]
