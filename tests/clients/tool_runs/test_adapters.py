"""What every adapter does: people's verdicts, programs that die wherever they are, and errors that say what to do."""

from __future__ import annotations

import re
import signal

import pytest

from agents.models import Effect
from agents.moves import cancel
from approvals.gates import closing
from approvals.models import Gate
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from checkpoints.store import claims
from tests.clients.framework_programs import newer
from tests.clients.scripted_model import Call, scripted
from tests.clients.tool_runs.tellers import DIE, MAIL, NO_MAIL, REFUND, Teller
from tests.clients.world import ended
from tests.conftest import SharedWeb
from tests.harness.waiting import until


@pytest.mark.parametrize("teller", ["openai_agents", "pydantic_ai"], indirect=True)
def test_each_call_has_a_verdict_of_its_own(teller: Teller) -> None:
    with scripted([REFUND, MAIL], "All is done.") as model:
        service = teller.start(model, "run", "k1")
        gate = teller.world.gate()
        assert [(each.id, each.arguments) for each in gate.asked.actions] == [REFUND, MAIL]
        teller.world.decides("", verdicts=NO_MAIL)
        service.says(r"final All is done\.")
        assert "ran refund 7 20.00" in service.log
        assert "ran mail" not in service.log
        told = model.told()
    assert "paid" in told
    assert "20.00" in told
    assert "Ann Okafor said no to mail: She has no mail. Do not do it another way." in told
    state = ended(gate.run_id)
    assert (state["results"], state["output"]) == ({"refund": teller.paid}, "All is done.")
    assert [(each.step, each.status, each.action) for each in Effect.objects.filter(run=gate.run_id)] == [
        ("call", "done", "refund")
    ]


@pytest.mark.long
def test_two_approved_calls_run_one_after_the_other(teller: Teller) -> None:
    with scripted([REFUND, MAIL], "Done.") as model:
        service = teller.start(model, "run", "k1")
        teller.world.decides()
        service.says("final Done")
        assert len(model.asked) == 2
    assert re.findall(r"ran \w+", service.log) == ["ran refund", "ran mail"]
    assert Effect.objects.filter(run__team=teller.world.team, status="done").count() == 2


def test_a_no_to_all_goes_back_to_the_agent_and_what_nobody_decided_is_told_as_that(teller: Teller) -> None:
    with scripted([REFUND, MAIL], [MAIL], "Then not.") as model:
        service = teller.start(model, "run", "k1")
        first = teller.world.decides("reject", comment="Not this month.", then="back")
        model.was_asked(2)
        assert model.told().count("Ann Okafor said no to") == 2
        assert "Not this month. Do not do it another way." in model.told()
        gate = newer(teller.world, first)
        closing.pass_deadline(gate)
        closing.expire(gate, by=SYSTEM)
        service.says("final Then not")
        assert "Nobody decided about mail in time, so it was not done. This is not a rejection" in model.told()
        assert model.told().count("said no") == 2
    assert "ran" not in service.log


@pytest.mark.long
def test_a_run_that_people_ended_is_raised_as_how_they_did(teller: Teller) -> None:
    with scripted([REFUND], [REFUND], [REFUND]) as model:
        first = teller.start(model, "run", "k1")
        gate = teller.world.gate()
        with teller.world.client() as hp:
            hp.withdraw(gate.pk, "She called.")
        first.says(r"Withdrawn \| Gate \d+ was withdrawn, so refund is not done: .*She called\.")
        second = teller.start(model, "run", "k2")
        cancel.cancel(Run.objects.get(pk=teller.world.gate().run_id), by=teller.world.owner, reason="Not needed.")
        second.says(r"(Stopped|Withdrawn) \| .*cancel")
        third = teller.start(model, "run", "k3")
        teller.world.decides("reject", comment="Not this month.", then="stop")
        third.says(r"Rejected \| Ann Okafor said no to refund: Not this month\. Do not do it another way\.")


def test_killed_while_it_waits_it_goes_on_by_its_key(teller: Teller) -> None:
    with scripted([REFUND], "Done.") as model:
        first = teller.start(model, "run", "k1")
        gate = teller.world.gate()
        first.kill()
        teller.world.decides()
        second = teller.start(model, "run", "k1")
        second.says("final Done")
        assert second.log.count("ran refund") == 1
        assert len(model.asked) == 2
        third = teller.start(model, "run", "k1")
        third.says(r"AlreadyDone \| Run \d+ of Teller has ended already; use its result\. \| Done\.")
        other = teller.start(model, "run", "k1", "Something else.")
        other.says(r"KeyReused \| The key 'k1' belongs to another input: go on with that one, or choose a new key")
    assert Gate.objects.filter(run__team=teller.world.team).count() == 1
    assert ended(gate.run_id)["output"] == "Done."


@pytest.mark.long
def test_a_program_without_an_event_loop_waits_and_is_killed_too(teller: Teller) -> None:
    with scripted([REFUND], "Done.") as model:
        first = teller.start(model, "sync", "k1")
        teller.world.gate()
        first.kill()
        teller.world.decides()
        second = teller.start(model, "sync", "k1")
        second.says("final Done")
        assert second.log.count("ran refund") == 1


@pytest.mark.long
def test_what_was_deferred_is_one_gate_under_its_key_and_resumed_in_another_process(teller: Teller) -> None:
    with scripted([REFUND], "Done.") as model:
        number = teller.deferred(model, "k1")
        assert teller.deferred(model, "k1") == number
        assert len(model.asked) == 1
        teller.start(model, "resume", number, 0).says(rf"StillOpen \| Gate {number} is still open")
        teller.world.decides()
        teller.start(model, "resume", number).says("final Done")


def test_a_call_that_ran_is_not_run_again_but_answered_by_its_record(teller: Teller) -> None:
    with scripted([REFUND, MAIL], "hang", "Done.") as model:
        first = teller.start(model, "run", "k1")
        gate = teller.world.decides()
        model.was_asked(2)
        first.kill()
        assert first.log.count("ran") == 2
        second = teller.start(model, "run", "k1")
        second.says("final Done")
        assert "ran" not in second.log
        assert "20.00" in model.told()
        assert "sent to marit" in model.told()
    assert Effect.objects.filter(run=gate.run_id, status="done").count() == 2


def test_a_call_in_whose_middle_the_program_died_is_asked_about(teller: Teller) -> None:
    with scripted([REFUND, DIE], "Done.") as model:
        first = teller.start(model, "run", "k1")
        teller.world.decides()
        until(lambda: not first.alive, what="the program dies")
        assert first.process.returncode == -signal.SIGKILL
        second = teller.start(model, "run", "k1")
        results = {"refund": teller.paid, "die": "it happened after all"}
        told = {"choice": "happened", "value": {"results": results}}
        assert teller.world.decides("answer", kind="recovery", answer=told).title.startswith("Did")
        second.says("final Done")
        assert "ran" not in second.log
        assert "it happened after all" in model.told()


@pytest.mark.long
@pytest.mark.parametrize(
    ("entered", "told"),
    [({}, "It was done, as people found out"), ({"die": "so it did"}, "so it did"), ({"id": "tx_1"}, "tx_1")],
)
def test_whatever_people_enter_no_call_is_asked_about_again(teller: Teller, entered: dict[str, str], told: str) -> None:
    with scripted([REFUND, DIE], "Done.") as model:
        first = teller.start(model, "run", "k1")
        gate = teller.world.decides()
        until(lambda: not first.alive, what="the program dies")
        second = teller.start(model, "run", "k1")
        teller.world.decides("answer", kind="recovery", answer={"choice": "happened", "value": {"results": entered}})
        second.says("final Done")
        assert "ran" not in second.log
        assert "20.00" in model.told()
        assert told in model.told()
    assert Gate.objects.filter(run=gate.run_id, kind="review").count() == 1


def test_two_calls_under_one_id_are_refused(teller: Teller) -> None:
    with scripted([REFUND, MAIL]) as model:
        model.same_id = True
        teller.start(model, "run", "k1").says(r"(CannotAsk \| Two calls of the agent have the id|raised \w+)")


@pytest.mark.long
def test_a_state_that_another_version_saved_is_refused(teller: Teller) -> None:
    with scripted([REFUND]) as model:
        number = teller.deferred(model, SAVED_BY="9.9")
        teller.world.decides()
        teller.start(model, "resume", number).says(rf"CannotResume \| {teller.unreadable}")


def test_a_gate_that_does_not_exist_or_is_another_programs_is_refused(teller: Teller) -> None:
    with scripted() as model, teller.world.client() as hp:
        teller.start(model, "resume", 987654321).says(r"CannotResume \| There is no gate 987654321")
        gate = hp.approve.defer("wire", {"to": "ACME"}, title="Pay").id
        teller.start(model, "resume", gate).says(r"CannotResume \| Gate \d+ was not opened by")


@pytest.mark.long
def test_a_tool_that_was_removed_meanwhile_says_what_to_do_and_its_approval_stays(teller: Teller) -> None:
    with scripted([REFUND, MAIL], "Done.") as model:
        number = teller.deferred(model)
        teller.world.decides()
        teller.start(model, "resume", number, agent="less").says(
            rf"CannotResume \| The agent Teller has no tool refund by now, about which people decided at gate {number}"
        )
        assert not Effect.objects.filter(run__team=teller.world.team).exists()
        service = teller.start(model, "resume", number)
        service.says("final Done")
        assert service.log.count("ran refund") == 1


@pytest.mark.long
def test_a_state_that_is_too_large_says_what_to_do(shared_web: SharedWeb, teller: Teller) -> None:
    teller.world.url = shared_web({"HOLDPOINT_STATE_LIMIT": "100000"})
    for length, name in ((60_000, "too-large"), (2_000_000, "far-too-large")):  # the request itself is too large too
        large: Call = ("refund", {"order": "7" * length, "amount": "1"})
        with scripted([large]) as model:
            service = teller.start(model, "run", name, PATIENCE="5")
            service.says(r"StateTooLarge \| The state of Teller is too large to be kept")


@pytest.mark.long
def test_a_result_that_is_too_large_says_what_to_do(shared_web: SharedWeb, teller: Teller) -> None:
    teller.world.url = shared_web({"HOLDPOINT_STATE_LIMIT": "100000"})
    with scripted([("archive", {"order": "7"})], "Done.", "Done.") as model:
        service = teller.start(model, "run", "k1")
        teller.world.decides()
        service.says(r"StateTooLarge \| archive ran, but the server does not keep its result \(200,002 bytes\)")
        told = {"choice": "happened", "value": {"results": {"archive": "in the cellar"}}}
        teller.world.decides("answer", kind="recovery", answer=told)
        second = teller.start(model, "run", "k1")
        second.says("final Done")
        assert "ran archive" not in second.log
        assert "in the cellar" in model.told()


@pytest.mark.long
def test_a_number_that_json_cannot_hold_is_refused(teller: Teller) -> None:
    with scripted([("refund", '{"order": "7", "amount": 1e999}')], "Done.") as model:
        service = teller.start(model, "run", "k1")
        service.says(teller.endless)
        assert "ran refund" not in service.log


@pytest.mark.long
def test_a_program_whose_run_another_took_over_is_told(teller: Teller) -> None:
    with scripted([REFUND], "hang") as model:
        service = teller.start(model, "run", "k1")
        gate = teller.world.decides()
        model.was_asked(2)
        row = Run.objects.get(pk=gate.run_id)

        def take_over() -> object:  # a heartbeat may come in between
            Run.objects.filter(pk=row.pk).update(lease_until=row.created_at)
            return claims.claim(row.pk, plan_ids=[row.plan_id], worker="box:2", lease=60, by=SYSTEM)

        assert until(take_over, what="another takes the run over")
        model.left.set()
        service.says(r"StaleToken \| ")
