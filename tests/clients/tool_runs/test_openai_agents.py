"""OpenAI's Agents SDK: an edit is a correction that the agent makes, hooks, streams, and agents that call others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from agents.models import Effect
from approvals.models import Gate
from tests.clients.framework_programs import first_example, newer, program
from tests.clients.scripted_model import Call, scripted
from tests.clients.tool_runs.tellers import LESS, LOOK, MAIL, NO_MAIL, REFUND, Teller
from tests.clients.world import ended
from tests.factories import ann

FAIL: Call = ("fail", {"order": "7"})


def test_an_edited_call_runs_as_corrected_without_another_question_once(openai: Teller) -> None:
    with scripted([REFUND, MAIL, LOOK], [("refund", LESS)], [("refund", LESS)], "Done.") as model:
        service = openai.start(model, "run", "k1")
        first = openai.world.decides("edit", arguments={"refund": LESS})
        assert "an edit rejects it and tells the agent to make the corrected one" in first.asked.summary
        again = newer(openai.world, first)
        told = model.told(1)
        assert "ran refund 7 10.00" in service.log
        assert "hook end refund" in service.log
        assert service.log.count("ran refund") == 1
        assert again.asked.actions[0].arguments == LESS
        openai.world.decides("reject", comment="Once is enough.", then="back")
        service.says("final Done")
        assert service.log.count("ran refund") == 1
        assert "Once is enough" in model.told()
    assert "Ann Okafor did not allow this call but a corrected one (amount is now '10.00')" in told
    assert "sent to marit" in told
    assert 'refund({"amount": "10.00", "order": "7"}). It is approved already, once.' in told.replace("\\", "")
    effects = Effect.objects.filter(run=first.run_id).order_by("pk")
    assert [(each.action, each.status) for each in effects] == [("mail", "done"), ("refund", "done")]


def test_a_corrected_call_with_one_other_value_asks(openai: Teller) -> None:
    other: Call = ("refund", {"order": "7", "amount": "10.01"})
    with scripted([REFUND], [other], "Done.") as model:
        service = openai.start(model, "run", "k1")
        first = openai.world.decides("edit", arguments={"refund": LESS})
        assert newer(openai.world, first).asked.actions[0].arguments == {"order": "7", "amount": "10.01"}
        assert "ran refund" not in service.log


@pytest.mark.long
def test_a_corrected_call_survives_a_kill_and_runs_once(openai: Teller) -> None:
    with scripted([REFUND], [("refund", LESS)], "hang", "Done.") as model:
        first = openai.start(model, "run", "k1")
        openai.world.decides("edit", arguments={"refund": LESS})
        model.was_asked(3)
        first.kill()
        assert first.log.count("ran refund 7 10.00") == 1
        second = openai.start(model, "run", "k1")
        second.says("final Done")
        assert "ran" not in second.log
        assert "paid 10.00" in model.told()
    assert Gate.objects.filter(run__team=openai.world.team).count() == 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("call", "tool", "arguments", "ran"),
    [
        (("shell_call", {"commands": ["rm -rf build"], "timeout_ms": 1000}), "shell",
         {"action": {"commands": ["rm -rf build"], "timeout_ms": 1000}}, "ran shell rm -rf build"),
        (("bank.pay", {"amount": "5"}), "bank.pay", {"amount": "5"}, ""),
    ],
)  # fmt: skip
def test_a_call_of_a_shell_or_a_hosted_server_is_asked_about_with_its_own_members(
    openai: Teller, call: Call, tool: str, arguments: dict[str, object], ran: str
) -> None:
    with scripted([call], "Done.") as model:
        service = openai.start(model, "run", "k1", agent="operator")
        [action] = openai.world.decides().asked.actions
        service.says("final Done")
        assert ran in service.log
        assert ran or '"approve": true' in model.everything()
    assert (action.tool, action.arguments) == (tool, arguments)


@pytest.mark.long
def test_arguments_that_are_no_object_are_shown_as_they_are(openai: Teller) -> None:
    twice = '{"order": "7", "order": "8", "amount": "1"}'
    with scripted([("refund", twice)], "Done.") as model:
        service = openai.start(model, "run", "k1")
        assert openai.world.gate().asked.actions[0].arguments == {"input": twice}
        openai.world.decides("reject", comment="Twice?", then="back")
        service.says("final Done")


@pytest.mark.long
def test_a_streamed_run_asks_is_killed_and_goes_on_streamed(openai: Teller) -> None:
    with scripted([REFUND, MAIL, LOOK], "Done.") as model:
        first = openai.start(model, "run", "k1", STREAMED="1")
        gate = openai.world.gate()
        first.says("event raw_response_event")
        assert "ran refund" not in first.log
        first.kill()
        openai.world.decides("", verdicts=NO_MAIL)
        second = openai.start(model, "run", "k1", STREAMED="1")
        second.says("final Done")
        assert "event run_item_stream_event tool_output" in second.log
        assert second.log.count("ran refund") == 1
        assert "ran mail" not in second.log
        assert "She has no mail." in model.told()
        assert all(each.get("stream") for each in model.asked)
    assert ended(gate.run_id)["output"] == "Done."


def test_a_call_that_raises_is_unknown_and_the_program_is_told(openai: Teller) -> None:
    with scripted([FAIL], "Done.") as model:
        first = openai.start(model, "run", "k1")
        openai.world.decides()
        first.says("(OSError|raised UserError).*no bank")
        told = {"choice": "happened", "value": {"results": {"fail": "paid"}}}
        assert openai.world.decides("answer", kind="recovery", answer=told).title.startswith("Did")
        openai.start(model, "run", "k1").says("final Done")


def test_a_run_state_of_other_agents_is_refused_and_its_approval_stays(openai: Teller) -> None:
    with scripted([REFUND], "Done.") as model:
        number = openai.deferred(model)
        openai.world.decides()
        openai.start(model, "resume", number, agent="renamed").says(
            r"CannotResume \| The saved RunState cannot be restored: .* Resume with the agents that saved it"
        )
        openai.start(model, "resume", number).says("final Done")


@pytest.mark.long
def test_the_calls_of_an_agent_that_it_was_handed_to_are_asked(openai: Teller) -> None:
    with scripted([("transfer_to_clerk", {})], [REFUND], "Done.") as model:
        first = openai.start(model, "run", "k1", agent="desk")
        assert openai.world.gate().asked.actions[0].title == "refund (Clerk)"
        first.kill()
        openai.world.decides()
        second = openai.start(model, "run", "k1", agent="desk")
        second.says("final Done")
        assert second.log.count("ran refund") == 1


def test_the_calls_of_an_agent_and_of_its_tool_are_one_gate(openai: Teller) -> None:
    with scripted([("ask_clerk", {"input": "refund it"}), MAIL], [REFUND], "Clerk is done.", "Done.") as model:
        first = openai.start(model, "run", "k1", agent="chief")
        gate = openai.world.gate()
        assert {each.title for each in gate.asked.actions} == {"refund (Clerk)", "mail (Chief)"}
        first.kill()
        openai.world.decides()
        second = openai.start(model, "run", "k1", agent="chief")
        second.says("final Done")
        assert "ran refund 7 20.00" in second.log
        assert "ran mail" in second.log
        assert "Clerk is done." in model.told()
    assert ended(gate.run_id)["results"] == {"refund": "paid 20.00", "mail": "sent to marit@example.org"}
    assert Effect.objects.filter(run=gate.run_id, status="done").count() == 2


@pytest.mark.long
def test_a_call_inside_an_agent_that_is_a_tool_is_not_run_again_after_a_kill(openai: Teller) -> None:
    with scripted([("ask_clerk", {"input": "refund it"})], [REFUND], "hang", "Clerk is done.", "Done.") as model:
        first = openai.start(model, "run", "k1", agent="chief")
        openai.world.decides()
        model.was_asked(3)
        first.kill()
        assert first.log.count("ran refund") == 1
        second = openai.start(model, "run", "k1", agent="chief")
        second.says("final Done")
        assert "ran refund" not in second.log
        assert "paid 20.00" in model.everything(3)


def test_a_correction_of_one_agents_call_approves_no_other_agents(openai: Teller) -> None:
    with scripted([("ask_clerk", {"input": "refund it"})], [REFUND], "I cannot.", [("refund", LESS)]) as model:
        service = openai.start(model, "run", "k1", agent="chief")
        first = openai.world.decides("edit", arguments={"refund": LESS})
        assert newer(openai.world, first).asked.actions[0].title == "refund (Chief)"
        assert "ran refund" not in service.log


@pytest.mark.long
def test_the_first_example_of_the_page_is_approved_in_a_browser_while_it_is_dead(
    openai: Teller, tmp_path: Path, new_page: Callable[..., Page]
) -> None:
    file = first_example("openai-agents", tmp_path)
    with scripted([REFUND], "You have your money back.") as model:
        first = program(openai.start_service, openai.world, model, file)
        gate = openai.world.gate()
        first.kill()
        page = new_page(ann(openai.world.team))
        page.goto(f"/gates/{gate.pk}/")
        expect(page.locator("main")).to_contain_text("This framework cannot change a call")
        expect(page.locator("main")).to_contain_text("20.00")
        page.locator("label[data-choice='approve']").first.click()
        page.locator(".commit:visible").click()
        expect(page.locator("#gate-line")).to_contain_text("Approved by Ann Okafor")
        second = program(openai.start_service, openai.world, model, file)
        second.says("You have your money back")
        assert second.log.count("Paying back 20.00 for order 7") == 1
    assert ended(gate.run_id)["output"] == "You have your money back."
