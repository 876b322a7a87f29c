"""Pydantic AI: an edited call runs as it was edited, and calls that are done elsewhere are the program's."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from agents.models import Effect
from tests.clients.framework_programs import first_example, program
from tests.clients.scripted_model import scripted
from tests.clients.tool_runs.tellers import LESS, MAIL, REFUND, Teller
from tests.clients.world import ended
from tests.factories import ann
from tests.harness.examples import first_alone


def test_an_edited_call_runs_once_with_the_edit_and_the_agent_is_told(pydantic: Teller) -> None:
    """After a kill too, by the record of the call."""
    with scripted([REFUND, MAIL], "hang", "All is done.") as model:
        first = pydantic.start(model, "run", "k1")
        gate = pydantic.world.decides("edit", arguments={"refund": LESS})
        assert "mail: why: it leaves the house" in gate.asked.reasons
        assert gate.asked.actions[0].schema["properties"]["amount"]["type"] == "string"
        model.was_asked(2)
        assert "ran refund 7 10.00" in first.log
        assert "ran mail marit@example.org Olga" in first.log
        assert "changed the call of refund before it ran: amount is now '10.00'." in model.everything()
        first.kill()
        second = pydantic.start(model, "run", "k1")
        second.says("final All is done")
        assert "ran" not in second.log
        assert "sent to marit" in model.told()
        assert "Ann Okafor changed the call of refund before it ran: amount is now '10.00'." in model.everything()
    effects = Effect.objects.filter(run=gate.run_id).order_by("pk")
    assert sorted((each.action, each.status) for each in effects) == [("mail", "done"), ("refund", "done")]


@pytest.mark.long
def test_an_argument_that_the_model_left_out_stays_out(pydantic: Teller) -> None:
    with scripted([("refund", {"order": "7"})], "Done.") as model:
        service = pydantic.start(model, "run", "k1")
        assert pydantic.world.decides().asked.actions[0].arguments == {"order": "7"}
        service.says("final Done")
        assert "ran refund 7 5.00" in service.log


@pytest.mark.long
def test_a_tool_that_asks_the_model_again_has_run(pydantic: Teller) -> None:
    with scripted([("again", {"order": "7"})], "Done.") as model:
        service = pydantic.start(model, "run", "k1")
        gate = pydantic.world.decides()
        service.says("final Done")
        assert "Take order 8." in model.told()
    assert ended(gate.run_id)["results"] == {"again": "The tool told the agent: Take order 8."}


@pytest.mark.long
def test_calls_that_are_done_elsewhere_are_the_programs(pydantic: Teller) -> None:
    with scripted([("elsewhere", {"order": "7"}), REFUND], [("elsewhere", {"order": "8"})], "Done.") as model:
        service = pydantic.start(model, "run", "k1", agent="elsewhere")
        assert [each.id for each in pydantic.world.decides().asked.actions] == ["refund"]
        service.says("final Done")
        assert "external elsewhere {'order': '7'}" in service.log
        assert "external elsewhere {'order': '8'}" in service.log
        assert "done elsewhere" in model.told()
    with scripted([("elsewhere", {"order": "7"})]) as model:
        pydantic.start(model, "run", "k2").says(r"CannotAsk \| The agent waits for elsewhere")


@pytest.mark.parametrize("given", first_alone([{"order": "8"}, REFUND[1]]))
def test_a_later_call_under_an_approved_calls_id_is_another_call(pydantic: Teller, given: dict[str, Any]) -> None:
    with scripted([REFUND], [("look", given)], "Done.") as model:
        model.ids_again = True
        service = pydantic.start(model, "run", "k1")
        gate = pydantic.world.decides()
        service.says("final Done")
    assert re.findall(r"ran \w+", service.log) == ["ran refund", "ran look"]
    assert Effect.objects.filter(run=gate.run_id).count() == 1


def test_a_gate_of_another_agent_is_refused_and_its_approval_stays(pydantic: Teller) -> None:
    with scripted([REFUND], "Done.") as model:
        number = pydantic.deferred(model)
        pydantic.world.decides()
        other = pydantic.start(model, "resume", number, agent="clerk")
        other.says(r"CannotResume \| The run is of the agent Teller, not of Clerk\. Resume it with Teller\.")
        assert "ran" not in other.log
        pydantic.start(model, "resume", number).says("final Done")


def test_the_first_example_of_the_page_is_edited_in_a_browser_while_it_is_dead(
    pydantic: Teller, tmp_path: Path, new_page: Callable[..., Page]
) -> None:
    file = first_example("pydantic-ai", tmp_path)
    with scripted([REFUND], "You have your money back.") as model:
        first = program(pydantic.start_service, pydantic.world, model, file)
        gate = pydantic.world.gate()
        first.kill()
        page = new_page(ann(pydantic.world.team))
        page.goto(f"/gates/{gate.pk}/")
        page.locator("#decide label[data-choice=edit]").click()
        page.get_by_label("Amount").locator("visible=true").first.fill("10.00")
        page.locator(".commit:visible").click()
        expect(page.locator("#gate-line")).to_contain_text("Ann Okafor")
        second = program(pydantic.start_service, pydantic.world, model, file)
        second.says("You have your money back")
        assert second.log.count("Paying back 10.00 for order 7") == 1
        assert "Ann Okafor changed the call of refund before it ran: amount is now '10.00'" in model.everything()
    assert ended(gate.run_id)["output"] == "You have your money back."
