"""The program dies, wherever it is: another goes on from the messages, and nothing runs twice."""

from __future__ import annotations

import signal

import pytest

from agents.models import Effect
from approvals.models import Gate
from tests.clients.pydantic_ai.conftest import Program
from tests.clients.pydantic_ai.test_verdicts import MAIL, REFUND
from tests.clients.scripted_model import scripted
from tests.clients.world import World, ended
from tests.conftest import SharedWeb
from tests.harness.waiting import until


def test_killed_while_it_waits_it_goes_on_by_its_key(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND], "Done.") as model:
        first = starts(world, model, "plain", "run", "k1")
        gate = world.gate()
        first.kill()
        world.decides()
        second = starts(world, model, "plain", "run", "k1")
        second.says("final Done")
        assert second.log.count("ran refund") == 1
        assert len(model.asked) == 2
        third = starts(world, model, "plain", "run", "k1")
        third.says(r"AlreadyDone \| Run \d+ of teller has ended already; use its result\. \| Done\.")
        other = starts(world, model, "plain", "run", "k1", "Something else.")
        other.says(r"KeyReused \| The key 'k1' belongs to another input")
    assert Gate.objects.filter(run__team=world.team).count() == 1
    assert ended(gate.run_id)["output"] == "Done."


@pytest.mark.long
def test_a_program_without_an_event_loop_waits_and_is_killed_too(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND], "Done.") as model:
        first = starts(world, model, "plain", "sync", "k1")
        world.gate()
        first.kill()
        world.decides()
        second = starts(world, model, "plain", "sync", "k1")
        second.says("final Done")
        assert second.log.count("ran refund") == 1


@pytest.mark.long
def test_what_was_deferred_is_resumed_by_its_gate_in_another_process(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND], "Done.") as model:
        number = int(starts(world, model, "plain", "defer").says(r"pending \d+").split()[1])
        world.decides()
        starts(world, model, "plain", "resume", number).says("final Done")


def test_a_gate_of_another_agent_is_refused(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND], "Done.") as model:
        number = int(starts(world, model, "plain", "defer").says(r"pending \d+").split()[1])
        world.decides()
        other = starts(world, model, "clerk", "resume", number)
        other.says(r"CannotResume \| The run is of the agent teller, not of clerk\. Resume it with teller\.")
        assert "ran" not in other.log
        starts(world, model, "plain", "resume", number).says("final Done")


@pytest.mark.long
def test_a_tool_that_was_removed_meanwhile_says_what_to_do_and_its_approval_stays(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND, MAIL], "Done.") as model:
        number = int(starts(world, model, "plain", "defer").says(r"pending \d+").split()[1])
        world.decides()
        starts(world, model, "less", "resume", number).says(
            rf"CannotResume \| The agent teller has no tool refund by now, about which people decided at gate {number}"
        )
        assert not Effect.objects.filter(run__team=world.team).exists()
        service = starts(world, model, "plain", "resume", number)
        service.says("final Done")
        assert service.log.count("ran refund") == 1


@pytest.mark.long
def test_a_result_and_a_history_that_are_too_large_say_what_to_do(shared_web: SharedWeb, starts: Program) -> None:
    world = World(shared_web({"HOLDPOINT_STATE_LIMIT": "100000"}))
    with scripted([("archive", {"order": "7"})], "Done.", "Done.") as model:
        service = starts(world, model, "plain", "run", "k1")
        world.decides()
        service.says(r"StateTooLarge \| archive ran, but the server does not keep its result \(200,002 bytes\)")
        told = {"choice": "happened", "value": {"results": {"archive": "in the cellar"}}}
        world.decides("answer", kind="recovery", answer=told)
        second = starts(world, model, "plain", "run", "k1")
        second.says("final Done")
        assert "ran archive" not in second.log
        assert "in the cellar" in model.told()
    with scripted([("refund", {"order": "7" * 60_000})]) as model:
        starts(world, model, "plain", "run", "k2").says(r"StateTooLarge \| The state of teller is too large to be kept")


def test_calls_that_ran_are_not_run_again_but_answered_by_their_record(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND, MAIL], "hang", "Done.") as model:
        first = starts(world, model, "plain", "run", "k1")
        gate = world.decides("edit", arguments={"refund": {"order": "7", "amount": 10.0}})
        model.was_asked(2)
        first.kill()
        assert first.log.count("ran") == 2
        second = starts(world, model, "plain", "run", "k1")
        second.says("final Done")
        assert "ran" not in second.log
        assert "sent to marit" in model.told()
        assert "Ann Okafor changed the call of refund" in model.everything()
    assert Effect.objects.filter(run=gate.run_id, status="done").count() == 2


def test_a_call_in_whose_middle_the_program_died_is_asked_about(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([("die", {"order": "7"})], "Done.") as model:
        first = starts(world, model, "plain", "run", "k1")
        world.decides()
        until(lambda: not first.alive, what="the program dies")
        assert first.process.returncode == -signal.SIGKILL
        second = starts(world, model, "plain", "run", "k1")
        world.decides("answer", kind="recovery", answer={"choice": "happened", "value": {"results": {"die": "it did"}}})
        second.says("final Done")
        assert "ran" not in second.log
        assert "it did" in model.told()
