"""What people say of an agent's calls, and what the agent is told."""

from __future__ import annotations

import re

import pytest

from agents.models import Effect
from agents.moves import cancel
from approvals.gates import closing
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.clients.framework_programs import newer
from tests.clients.openai_agents.conftest import Program
from tests.clients.scripted_model import Call, scripted
from tests.clients.world import World, ended

REFUND: Call = ("refund", {"order": "7", "amount": "20.00"})
MAIL: Call = ("mail", {"to": "marit@example.org"})


def test_each_call_has_a_verdict_of_its_own(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND, MAIL, ("look", {"order": "7"})], "All is done.") as model:
        service = starts(world, model, "plain", "run", "k1")
        gate = world.gate()
        assert [(each.id, each.arguments) for each in gate.asked.actions] == [
            ("refund", {"order": "7", "amount": "20.00"}),
            ("mail", {"to": "marit@example.org"}),
        ]
        assert "an edit rejects it and tells the agent to make the corrected one" in gate.asked.summary
        no = {"verdict": "reject", "reason": "She has no mail."}
        world.decides("", verdicts={"refund": {"verdict": "approve"}, "mail": no})
        service.says(r"final All is done\.")
        assert "ran refund 7 20.00" in service.log
        assert "ran mail" not in service.log
        assert "hook end refund" in service.log
        told = model.told()
    assert "paid 20.00" in told
    assert "Ann Okafor said no to mail: She has no mail. Do not do it another way." in told
    state = ended(gate.run_id)
    assert (state["results"], state["output"]) == ({"refund": "paid 20.00"}, "All is done.")
    assert [(each.step, each.status, each.action) for each in Effect.objects.filter(run=gate.run_id)] == [
        ("call", "done", "refund")
    ]


@pytest.mark.long
def test_two_approved_calls_run_one_after_the_other(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND, MAIL], "Done.") as model:
        service = starts(world, model, "plain", "run", "k1")
        world.decides()
        service.says("final Done")
        assert len(model.asked) == 2
    assert re.findall(r"ran \w+", service.log) == ["ran refund", "ran mail"]
    assert Effect.objects.filter(run__team=world.team, status="done").count() == 2


def test_an_edited_call_runs_as_corrected_without_another_question_once(web: str, starts: Program) -> None:
    world, less = World(web), {"order": "7", "amount": "10.00"}
    with scripted([REFUND, MAIL], [("refund", less)], [("refund", less)], "Done.") as model:
        service = starts(world, model, "plain", "run", "k1")
        first = world.decides("edit", arguments={"refund": less})
        again = newer(world, first)
        told = model.told(1)
        assert "ran refund 7 10.00" in service.log
        assert service.log.count("ran refund") == 1
        assert again.asked.actions[0].arguments == less
        world.decides("reject", comment="Once is enough.", then="back")
        service.says("final Done")
        assert service.log.count("ran refund") == 1
        assert "Once is enough" in model.told()
    assert "Ann Okafor did not allow this call but a corrected one (amount is now '10.00')" in told
    assert "sent to marit" in told
    assert 'refund({"amount": "10.00", "order": "7"}). It is approved already, once.' in told.replace("\\", "")
    effects = Effect.objects.filter(run=first.run_id).order_by("pk")
    assert [(each.action, each.status) for each in effects] == [("mail", "done"), ("refund", "done")]


def test_a_corrected_call_with_one_other_value_asks(web: str, starts: Program) -> None:
    world = World(web)
    other: Call = ("refund", {"order": "7", "amount": "10.01"})
    with scripted([REFUND], [other], "Done.") as model:
        service = starts(world, model, "plain", "run", "k1")
        first = world.decides("edit", arguments={"refund": {"order": "7", "amount": "10.00"}})
        assert newer(world, first).asked.actions[0].arguments == {"order": "7", "amount": "10.01"}
        assert "ran refund" not in service.log


def test_a_no_to_all_goes_back_to_the_agent(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND, MAIL], "Then not.") as model:
        service = starts(world, model, "plain", "run", "k1")
        world.decides("reject", comment="Not this month.", then="back")
        service.says("final Then not")
        assert model.told().count("Ann Okafor said no to") == 2
        assert "Not this month. Do not do it another way." in model.told()
    assert "ran" not in service.log


@pytest.mark.long
def test_a_no_that_stops_ends_the_run(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND]) as model:
        service = starts(world, model, "plain", "run", "k1")
        world.decides("reject", comment="Not this month.", then="stop")
        service.says(r"Rejected \| Ann Okafor said no to refund: Not this month\. Do not do it another way\.")


@pytest.mark.long
def test_what_nobody_decided_is_told_as_that(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND], "Nobody was there.") as model:
        service = starts(world, model, "plain", "run", "k1")
        gate = world.gate()
        closing.pass_deadline(gate)
        closing.expire(gate, by=SYSTEM)
        service.says("final Nobody was there")
        assert "Nobody decided about refund in time, so it was not done. This is not a rejection" in model.told()
        assert "said no" not in model.told()
    assert "ran" not in service.log


@pytest.mark.long
def test_a_withdrawn_gate_and_a_cancelled_run_are_raised_as_themselves(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([REFUND], [REFUND]) as model:
        first = starts(world, model, "plain", "run", "k1")
        gate = world.gate()
        with world.client() as hp:
            hp.withdraw(gate.pk, "She called.")
        first.says(r"Withdrawn \| Gate \d+ was withdrawn: .*She called\.")
        second = starts(world, model, "plain", "run", "k2")
        cancel.cancel(Run.objects.get(pk=world.gate().run_id), by=world.owner, reason="Not needed.")
        second.says(r"(Stopped|Withdrawn) \| .*cancel")


@pytest.mark.long
def test_a_shell_call_is_asked_about_with_its_commands(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([("shell_call", {"commands": ["rm -rf build"], "timeout_ms": 1000})], "Done.") as model:
        service = starts(world, model, "operator", "run", "k1")
        gate = world.decides()
        service.says("final Done")
    action = gate.asked.actions[0]
    assert (action.tool, action.arguments["action"]["commands"]) == ("shell", ["rm -rf build"])
    assert "ran shell rm -rf build" in service.log


@pytest.mark.long
def test_a_call_of_a_hosted_server_is_asked_about_with_the_servers_name(web: str, starts: Program) -> None:
    world = World(web)
    with scripted([("bank.pay", {"amount": "5"})], "Done.") as model:
        service = starts(world, model, "operator", "run", "k1")
        gate = world.decides()
        service.says("final Done")
        assert '"approve": true' in model.everything()
    assert [(each.tool, each.arguments) for each in gate.asked.actions] == [("bank.pay", {"amount": "5"})]
