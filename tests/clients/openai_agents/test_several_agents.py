"""Agents that hand over, and agents that are tools of others: their calls are at one gate."""

from __future__ import annotations

import pytest

from agents.models import Effect
from tests.clients.framework_programs import newer
from tests.clients.openai_agents.conftest import Program
from tests.clients.openai_agents.test_verdicts import MAIL, REFUND
from tests.clients.scripted_model import scripted
from tests.clients.world import World, ended


@pytest.mark.long
def test_the_calls_of_an_agent_that_it_was_handed_to_are_asked(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([("transfer_to_clerk", {})], [REFUND], "Done.") as model:
        first = starts(world, model, "desk", "run", "k1")
        gate = world.gate()
        assert gate.asked.actions[0].title == "refund (Clerk)"
        first.kill()
        world.decides()
        second = starts(world, model, "desk", "run", "k1")
        second.says("final Done")
        assert second.log.count("ran refund") == 1


def test_the_calls_of_an_agent_and_of_its_tool_are_one_gate(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([("ask_clerk", {"input": "refund it"}), MAIL], [REFUND], "Clerk is done.", "Done.") as model:
        first = starts(world, model, "chief", "run", "k1")
        gate = world.gate()
        assert {each.title for each in gate.asked.actions} == {"refund (Clerk)", "mail (Chief)"}
        first.kill()
        world.decides()
        second = starts(world, model, "chief", "run", "k1")
        second.says("final Done")
        assert "ran refund 7 20.00" in second.log
        assert "ran mail" in second.log
        assert "Clerk is done." in model.told()
    assert ended(gate.run_id)["results"] == {"refund": "paid 20.00", "mail": "sent to marit@example.org"}
    assert Effect.objects.filter(run=gate.run_id, status="done").count() == 2


@pytest.mark.long
def test_a_call_inside_an_agent_that_is_a_tool_is_not_run_again_after_a_kill(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([("ask_clerk", {"input": "refund it"})], [REFUND], "hang", "Clerk is done.", "Done.") as model:
        first = starts(world, model, "chief", "run", "k1")
        world.decides()
        model.was_asked(3)
        first.kill()
        assert first.log.count("ran refund") == 1
        second = starts(world, model, "chief", "run", "k1")
        second.says("final Done")
        assert "ran refund" not in second.log
        assert "paid 20.00" in model.everything(3)


def test_a_correction_of_one_agents_call_approves_no_other_agents(web: str, starts: Program) -> None:
    world, less = World(web), {"order": "7", "amount": "10.00"}
    with scripted([("ask_clerk", {"input": "refund it"})], [REFUND], "I cannot.", [("refund", less)]) as model:
        service = starts(world, model, "chief", "run", "k1")
        first = world.decides("edit", arguments={"refund": less})
        again = newer(world, first)
        assert again.asked.actions[0].title == "refund (Chief)"
        assert "ran refund" not in service.log
