"""A program asks with the client and waits: what people say is what it gets, called or awaited."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from holdpoint import Answered, AsyncHoldpoint, Expired, Holdpoint, Rejected, StillOpen, Withdrawn

from agents.models import Effect
from approvals.gates import closing
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.clients.world import WIRE, World, ended
from tests.harness.examples import first_alone
from tests.harness.waiting import PATIENCE

Got = dict[str, Any]


def wires(hp: Holdpoint, **more: Any) -> Got:
    """Ask, wire, and say what came."""
    with hp.approve("wire", WIRE, state={"invoice": 7}, title="Pay invoice 7", pinned=["amount"], **more) as call:
        got: Got = {"arguments": call.arguments, "key": call.key, "changes": call.changes, "edits": call.edits}
        got |= {"by": call.decision.by, "comment": call.decision.comment, "run": call.run}
        call.done({"id": "tx_1"})
    return got


async def wires_awaited(hp: AsyncHoldpoint, **more: Any) -> Got:
    """The same, awaited."""
    asked = hp.approve("wire", WIRE, state={"invoice": 7}, title="Pay invoice 7", pinned=["amount"], **more)
    async with asked as call:
        got: Got = {"arguments": call.arguments, "key": call.key, "changes": call.changes, "edits": call.edits}
        got |= {"by": call.decision.by, "comment": call.decision.comment, "run": call.run}
        await call.done({"id": "tx_1"})
    return got


@pytest.fixture(params=first_alone(["called", "awaited"]))
def way(request: pytest.FixtureRequest) -> str:
    """Which of the two clients it is."""
    return str(request.param)


def start(world: World, way: str, **more: Any) -> Future[Got]:
    """Let the program run beside the test."""
    if way == "called":
        return world.runs(lambda hp: wires(hp, **more))
    return world.awaits(lambda hp: wires_awaited(hp, **more))


def test_an_edit_is_what_runs(world: World, way: str) -> None:
    told = start(world, way)
    world.decides("edit", arguments={"wire": {**WIRE, "amount": "100.00"}}, comment="A tenth less.")
    got = told.result(PATIENCE)
    assert got["arguments"] == {"to": "ACME", "amount": "100.00"}
    assert got["edits"] == [{"op": "replace", "path": "/amount", "value": "100.00"}]
    assert got["changes"] == ["amount is now '100.00'"]
    assert (got["by"], got["comment"]) == ("Ann Okafor", "A tenth less.")
    assert ended(got["run"])["wire_result"] == {"id": "tx_1"}
    row = Effect.objects.get(run=got["run"])
    assert (row.status, row.key, row.attempts) == ("done", got["key"], 1)


def test_a_no_is_raised_with_its_words(world: World, way: str) -> None:
    told = start(world, way)
    gate = world.decides("reject", comment="Not this month")
    with pytest.raises(Rejected, match=r"Ann Okafor said no to wire: Not this month\. Do not") as refused:
        told.result(PATIENCE)
    assert (refused.value.by, refused.value.reason, refused.value.gate) == ("Ann Okafor", "Not this month", gate.pk)
    assert Run.objects.get(pk=gate.run_id).status == "cancelled"
    assert not Effect.objects.filter(run=gate.run_id).exists()


def test_an_answer_in_its_place_is_raised_as_a_value(world: World, way: str) -> None:
    told = start(world, way, respond=True)
    gate = world.decides("", verdicts={"wire": {"verdict": "respond", "response": "Paid by card already."}})
    with pytest.raises(Answered) as answered:
        told.result(PATIENCE)
    assert (answered.value.answer, answered.value.by) == ("Paid by card already.", "Ann Okafor")
    assert ended(gate.run_id)["wire_result"] == "Paid by card already."


def test_a_deadline_that_passed_is_no_no(world: World, way: str) -> None:
    told = start(world, way)
    gate = world.gate()
    closing.pass_deadline(gate)
    closing.expire(gate, by=SYSTEM)
    with pytest.raises(Expired, match="Nobody answered"):
        told.result(PATIENCE)
    assert Run.objects.get(pk=gate.run_id).status == "cancelled"


def test_a_gate_that_was_withdrawn_says_why(world: World, way: str) -> None:
    told = start(world, way)
    gate = world.gate()
    closing.withdraw(gate, by=SYSTEM, reason="The invoice was void.")
    with pytest.raises(Withdrawn, match=r"The invoice was void\."):
        told.result(PATIENCE)


def test_nobody_decides_in_the_time_that_is_given(world: World, way: str) -> None:
    told = start(world, way, timeout=0.0)
    with pytest.raises(StillOpen) as still:
        told.result(PATIENCE)
    assert still.value.gate == world.gate().pk
    assert Gate.objects.get(pk=still.value.gate).status == "open"
