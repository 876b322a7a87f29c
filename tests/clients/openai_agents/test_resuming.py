"""The program dies, wherever it is: another goes on from the RunState, and nothing runs twice."""

from __future__ import annotations

import signal

import pytest

from agents.models import Effect
from approvals.models import Gate
from tests.clients.openai_agents.conftest import Program
from tests.clients.openai_agents.test_verdicts import MAIL, REFUND
from tests.clients.scripted_model import Call, scripted
from tests.clients.world import World, ended
from tests.harness.waiting import until

DIE: Call = ("die", {"order": "7"})
FAIL: Call = ("fail", {"order": "7"})


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
        third.says(r"AlreadyDone \| Run \d+ of Teller has ended already; use its result\. \| Done\.")
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
        first = starts(world, model, "plain", "defer")
        number = int(first.says(r"pending \d+").split()[1])
        late = starts(world, model, "plain", "resume", number, 0)
        late.says(rf"StillOpen \| Gate {number} is still open")
        world.decides()
        starts(world, model, "plain", "resume", number).says("final Done")


@pytest.mark.long
def test_a_streamed_run_asks_is_killed_and_goes_on_streamed(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND, MAIL, ("look", {"order": "7"})], "Done.") as model:
        first = starts(world, model, "plain", "run", "k1", STREAMED="1")
        gate = world.gate()
        first.says("event raw_response_event")
        assert "ran refund" not in first.log
        first.kill()
        no = {"verdict": "reject", "reason": "She has no mail."}
        world.decides("", verdicts={"refund": {"verdict": "approve"}, "mail": no})
        second = starts(world, model, "plain", "run", "k1", STREAMED="1")
        second.says("final Done")
        assert "event run_item_stream_event tool_output" in second.log
        assert second.log.count("ran refund") == 1
        assert "ran mail" not in second.log
        assert "She has no mail." in model.told()
        assert all(each.get("stream") for each in model.asked)
    assert ended(gate.run_id)["output"] == "Done."


@pytest.mark.long
def test_what_was_deferred_twice_under_one_key_is_one_gate(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND]) as model:
        first = starts(world, model, "plain", "defer", "k1").says(r"pending \d+")
        assert starts(world, model, "plain", "defer", "k1").says(r"pending \d+") == first
        assert len(model.asked) == 1


def test_a_call_that_ran_is_not_run_again_but_answered_by_its_record(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND, MAIL], "hang", "Done.") as model:
        first = starts(world, model, "plain", "run", "k1")
        gate = world.decides()
        model.was_asked(2)
        first.kill()
        assert first.log.count("ran") == 2
        second = starts(world, model, "plain", "run", "k1")
        second.says("final Done")
        assert "ran" not in second.log
        assert "paid 20.00" in model.told()
        assert "sent to marit" in model.told()
    assert Effect.objects.filter(run=gate.run_id, status="done").count() == 2


def test_a_call_in_whose_middle_the_program_died_is_asked_about(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND, DIE], "Done.") as model:
        first = starts(world, model, "plain", "run", "k1")
        world.decides()
        until(lambda: not first.alive, what="the program dies")
        assert first.process.returncode == -signal.SIGKILL
        second = starts(world, model, "plain", "run", "k1")
        question = world.gate("recovery")
        results = {"refund": "paid 20.00", "die": "it happened after all"}
        world.decides("answer", kind="recovery", answer={"choice": "happened", "value": {"results": results}})
        assert question.title.startswith("Did")
        second.says("final Done")
        assert "ran" not in second.log
        assert "it happened after all" in model.told()


@pytest.mark.long
@pytest.mark.parametrize(
    ("entered", "told"),
    [({}, "It was done, as people found out"), ({"die": "so it did"}, "so it did"), ({"id": "tx_1"}, "tx_1")],
)
def test_whatever_people_enter_no_call_is_asked_about_again(
    web: str, starts: Program, entered: dict[str, str], told: str
) -> None:
    world = World(web)
    with scripted([REFUND, DIE], "Done.") as model:
        first = starts(world, model, "plain", "run", "k1")
        gate = world.decides()
        until(lambda: not first.alive, what="the program dies")
        second = starts(world, model, "plain", "run", "k1")
        world.decides("answer", kind="recovery", answer={"choice": "happened", "value": {"results": entered}})
        second.says("final Done")
        assert "ran" not in second.log
        assert "paid 20.00" in model.told()
        assert told in model.told()
    assert Gate.objects.filter(run=gate.run_id, kind="review").count() == 1


def test_a_call_that_raises_is_unknown_and_the_program_is_told(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([FAIL], "Done.") as model:
        first = starts(world, model, "plain", "run", "k1")
        world.decides()
        first.says("(OSError|raised UserError).*no bank")
        assert world.gate("recovery").title.startswith("Did")
        world.decides("answer", kind="recovery", answer={"choice": "happened", "value": {"results": {"fail": "paid"}}})
        starts(world, model, "plain", "run", "k1").says("final Done")


@pytest.mark.long
def test_a_corrected_call_survives_a_kill_and_runs_once(web: str, starts: Program) -> None:
    world, less = World(web), {"order": "7", "amount": "10.00"}
    with scripted([REFUND], [("refund", less)], "hang", "Done.") as model:
        first = starts(world, model, "plain", "run", "k1")
        world.decides("edit", arguments={"refund": less})
        model.was_asked(3)
        first.kill()
        assert first.log.count("ran refund 7 10.00") == 1
        second = starts(world, model, "plain", "run", "k1")
        second.says("final Done")
        assert "ran" not in second.log
        assert "paid 10.00" in model.told()
    assert Gate.objects.filter(run__team=world.team).count() == 1
