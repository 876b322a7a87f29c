"""What people say of an agent's calls, and what the agent is told."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agents.models import Effect
from approvals.gates import closing
from checkpoints.actors import SYSTEM
from tests.clients.framework_programs import newer
from tests.clients.pydantic_ai.conftest import Program
from tests.clients.scripted_model import Call, scripted
from tests.clients.world import World, ended
from tests.harness.examples import first_alone

REFUND: Call = ("refund", {"order": "7", "amount": 20.0})
MAIL: Call = ("mail", {"to": "marit@example.org"})


def test_each_call_has_a_verdict_of_its_own(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND, MAIL], "All is done.") as model:
        service = starts(world, model, "plain", "run", "k1")
        gate = world.gate()
        assert [each.id for each in gate.asked.actions] == ["refund", "mail"]
        assert "mail: why: it leaves the house" in gate.asked.reasons
        assert gate.asked.actions[0].schema["properties"]["amount"]["type"] == "number"
        no = {"verdict": "reject", "reason": "She has no mail."}
        world.decides("", verdicts={"refund": {"verdict": "approve"}, "mail": no})
        service.says(r"final All is done\.")
        assert "ran refund 7 20.0" in service.log
        assert "ran mail" not in service.log
        told = model.told()
    assert "paid" in told
    assert "Ann Okafor said no to mail: She has no mail. Do not do it another way." in told
    assert ended(gate.run_id)["results"] == {"refund": {"paid": 20.0}}


def test_an_edited_call_runs_with_the_edit_and_the_agent_is_told(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND, MAIL], "All is done.") as model:
        service = starts(world, model, "plain", "run", "k1")
        gate = world.decides("edit", arguments={"refund": {"order": "7", "amount": 10.0}})
        service.says("final All is done")
        assert "ran refund 7 10.0" in service.log
        assert "ran mail marit@example.org Olga" in service.log
        told = model.everything()
    assert "Ann Okafor changed the call of refund before it ran: amount is now 10.0." in told
    effects = Effect.objects.filter(run=gate.run_id).order_by("pk")
    assert sorted((each.action, each.status) for each in effects) == [("mail", "done"), ("refund", "done")]


@pytest.mark.long
def test_an_argument_that_the_model_left_out_stays_out(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([("refund", {"order": "7"})], "Done.") as model:
        service = starts(world, model, "plain", "run", "k1")
        assert world.decides().asked.actions[0].arguments == {"order": "7"}
        service.says("final Done")
        assert "ran refund 7 5.0" in service.log


@pytest.mark.long
def test_a_no_to_all_goes_back_to_the_agent_and_what_nobody_decided_is_told_as_that(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND], [MAIL], "Then not.") as model:
        service = starts(world, model, "plain", "run", "k1")
        first = world.decides("reject", comment="Not this month.", then="back")
        model.was_asked(2)
        assert "Ann Okafor said no to refund: Not this month. Do not do it another way." in model.told()
        gate = newer(world, first)
        closing.pass_deadline(gate)
        closing.expire(gate, by=SYSTEM)
        service.says("final Then not")
        assert "Nobody decided about mail in time, so it was not done. This is not a rejection" in model.told()
    assert "ran" not in service.log


@pytest.mark.long
def test_a_tool_that_asks_the_model_again_has_run(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([("again", {"order": "7"})], "Done.") as model:
        service = starts(world, model, "plain", "run", "k1")
        gate = world.decides()
        service.says("final Done")
        assert "Take order 8." in model.told()
    assert ended(gate.run_id)["results"] == {"again": "The tool told the agent: Take order 8."}


@pytest.mark.long
def test_calls_that_are_done_elsewhere_are_the_programs(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([("elsewhere", {"order": "7"}), REFUND], [("elsewhere", {"order": "8"})], "Done.") as model:
        service = starts(world, model, "elsewhere", "run", "k1")
        assert [each.id for each in world.decides().asked.actions] == ["refund"]
        service.says("final Done")
        assert "external elsewhere {'order': '7'}" in service.log
        assert "external elsewhere {'order': '8'}" in service.log
        assert "done elsewhere" in model.told()
    with scripted([("elsewhere", {"order": "7"})]) as model:
        starts(world, model, "plain", "run", "k2").says(r"CannotAsk \| The agent waits for elsewhere")


@pytest.mark.parametrize("given", first_alone([{"order": "8"}, REFUND[1]]))
def test_a_later_call_under_an_approved_calls_id_is_another_call(
    web: str, starts: Program, given: dict[str, Any]
) -> None:
    world = World(web)
    with scripted([REFUND], [("look", given)], "Done.") as model:
        model.ids_again = True
        service = starts(world, model, "plain", "run", "k1")
        gate = world.decides()
        service.says("final Done")
    assert re.findall(r"ran \w+", service.log) == ["ran refund", "ran look"]
    assert Effect.objects.filter(run=gate.run_id).count() == 1
