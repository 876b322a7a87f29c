"""Version 1 waits, version 2 is deployed: nothing is decided into the void, and with an upcaster everything goes on."""

from __future__ import annotations

from typing import Any

import pytest

from agents.definition import registry
from agents.errors import RewindRefused
from agents.moves import fork, rewind
from agents.runner import engine, version_upgrade
from agents.serving.sweeper import Sweeper
from approvals.errors import CannotResume
from approvals.gates import preflight_facts
from approvals.models import Gate
from checkpoints.audit.verify_runs import verify_run
from checkpoints.models import Checkpoint, Event, Run
from checkpoints.values.canonical_json import decode_canonical
from tests.agents.compatibility.conftest import Deploy
from tests.agents.compatibility.porter import SENT
from tests.factories import ann
from tests.factories.driven_runs import advance, advance_to_rest, decide, make_run, open_gate, state, trail


def waiting(deploy: Deploy, order: str = "A-1") -> Run:
    """A run of version 1 that stands at its gate."""
    deploy("one")
    return advance_to_rest(make_run("porter", order=order))


def swept(run: Run) -> Run:
    """The run after one pass of the sweeper."""
    Sweeper().upgrade()
    run.refresh_from_db()
    return run


def shown(run: Run) -> dict[str, str]:
    """Check -> colour of the open gate's preflight."""
    return {each.check: each.colour for each in preflight_facts.of_gate(open_gate(run)).findings}


def test_a_renamed_step_is_red_before_anybody_decides_and_the_decision_is_refused(deploy: Deploy) -> None:
    run = waiting(deploy)
    assert preflight_facts.of_gate(open_gate(run)).colour == "green"
    deploy("two_bare")
    found = preflight_facts.of_gate(open_gate(run))
    assert [each.words for each in found.findings if each.colour == "red"] == [
        "Version 1 is not deployed; version 2 is, and has no step propose. "
        "Write an upcaster from 1 to 2, or deploy version 1 again."
    ]
    for verdict in ("approve", "reject"):
        with pytest.raises(CannotResume, match="cancel the run instead"):
            decide(run, verdict)
    assert open_gate(run).decisions.count() == 0
    told = Event.objects.filter(run_id=run.pk, kind="decision.refused").first()
    assert told is not None
    assert decode_canonical(bytes(told.data)) == {"kind": "cannot_resume", "verdict": "approve", "checks": ["version"]}


def test_with_the_upcaster_written_every_waiting_run_resumes_to_its_end(deploy: Deploy) -> None:
    runs = [waiting(deploy, order) for order in ("A-1", "A-2", "A-3")]
    gates = [open_gate(run) for run in runs]
    deploy("two_bare")
    assert [swept(run).status for run in runs] == ["waiting"] * 3
    deploy("two")
    found = preflight_facts.of_gate(gates[0])
    assert found.colour == "amber"
    assert "upcaster from_1 runs first. propose is now draft." in found.reasons[0].words
    assert Sweeper().upgrade() == 3
    for run, gate in zip(runs, gates, strict=True):
        advance_to_rest(run)
        gate.refresh_from_db()
        assert gate.status == "withdrawn"
        assert "Version 2 of porter takes the run over" in gate.outcome.words
        assert shown(run) == dict.fromkeys(
            ("checkpoint", "version", "state", "configuration", "libraries", "artifacts"), "green"
        )
        decide(run)
        assert advance_to_rest(run).status == "completed"
    assert [("2", f"About order A-{number}") for number in (1, 2, 3)] == SENT
    assert not [fault for run in runs for fault in verify_run(run)]


def test_the_upcast_is_a_checkpoint_of_the_new_plan_and_an_event(deploy: Deploy) -> None:
    run = waiting(deploy)
    deploy("two")
    advance_to_rest(swept(run))
    assert run.plan.version == "2"
    assert trail(run) == [("input", "input"), ("step", "find"), ("step", "propose"), ("upcast", "review")]
    assert state(run) == {"order": "A-1", "found": "order A-1", "reply": "About order A-1", "feedback": [], "sent": ""}
    kinds = list(Event.objects.filter(run_id=run.pk).order_by("id").values_list("kind", flat=True))
    assert kinds[-8:] == [
        "run.queued", "run.running", "gate.withdrawn", "checkpoint.saved", "run.upcast", "gate.opened", "gate.replaced",
        "run.waiting",
    ]  # fmt: skip
    note = run.notes.get(checkpoint=Checkpoint.objects.get(run=run, kind="upcast").id)
    assert bytes(note.text) == b"Upgraded from version 1 to 2 by from_1. propose is now draft."


def test_sent_back_it_goes_to_the_step_by_its_new_name(deploy: Deploy) -> None:
    run = waiting(deploy)
    deploy("two")
    advance_to_rest(swept(run))
    decide(run, "reject", then="back", back_to="draft", comment="in French")
    advance_to_rest(run)
    assert state(run)["reply"] == "Dear customer, about order A-1 in French"
    assert open_gate(run).title == "Send this reply?"


def test_sent_back_to_before_the_upcast_it_is_brought_up_again(deploy: Deploy) -> None:
    run = waiting(deploy)
    deploy("two")
    advance_to_rest(swept(run))
    decide(run, "reject", then="back", back_to="find", comment="look again")
    advance_to_rest(run)
    assert run.plan.version == "2"
    assert trail(run)[4:] == [
        ("gate", "review"), ("rewind", "review"), ("upcast", "find"), ("step", "find"), ("step", "draft"),
    ]  # fmt: skip
    assert state(run)["reply"] == "Dear customer, about order A-1 look again"


def test_the_step_that_it_is_sent_back_to_runs_though_an_upcast_lies_between(deploy: Deploy) -> None:
    """Its record, of the same code on the same input, was once taken: what stood before the step was the upcast."""
    run = waiting(deploy)
    deploy("two_alike")
    advance_to_rest(swept(run))
    decide(run, "reject", then="back", back_to="find", comment="look again")
    advance_to_rest(run)
    assert trail(run)[5:] == [("rewind", "review"), ("upcast", "find"), ("step", "find"), ("step", "propose")]


def test_an_approval_that_was_not_applied_yet_is_applied_and_then_asked_again_for_the_new_version(
    deploy: Deploy,
) -> None:
    run = waiting(deploy)
    decide(run, "edit", arguments={"text": "Bonjour"})
    deploy("two")
    advance_to_rest(run)
    assert SENT == []
    assert trail(run)[3:] == [("gate", "review"), ("upcast", "send"), ("reopen", "send")]
    assert state(run)["reply"] == "Bonjour"
    changes = (open_gate(run).asked.reopened or {})["changes"]
    assert ("/version", "1", "2") in [(row["pointer"], row["before"], row["after"]) for row in changes]
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert SENT == [("2", "Bonjour")]


def test_a_rejection_that_was_not_applied_yet_goes_back_with_its_feedback(deploy: Deploy) -> None:
    run = waiting(deploy)
    decide(run, "reject", then="back", back_to="propose", comment="shorter")
    deploy("two")
    advance_to_rest(run)
    assert trail(run)[3:] == [("gate", "review"), ("rewind", "review"), ("upcast", "draft"), ("step", "draft")]
    assert state(run)["reply"] == "Dear customer, about order A-1 shorter"


def test_a_rejection_that_goes_back_to_before_an_upgrade_is_brought_up_from_there(deploy: Deploy) -> None:
    """The upcaster from the version of the gate was called with a state of the version before that."""
    run = waiting(deploy)
    deploy("two_alike")
    advance_to_rest(swept(run))
    decide(run, "reject", then="back", back_to="find", comment="look again")
    deploy("three_alike")
    advance_to_rest(run)
    assert trail(run)[4:7] == [("gate", "review"), ("rewind", "review"), ("upcast", "find")]
    told = Event.objects.filter(run_id=run.pk, kind="run.upcast").order_by("pk").values_list("data", flat=True)
    assert [decode_canonical(bytes(data))["upcasters"] for data in told] == [["from_1"], ["from_1", "from_2"]]


def test_a_rejection_that_ends_the_run_ends_it_without_any_code(deploy: Deploy) -> None:
    run = waiting(deploy)
    decide(run, "reject", then="stop", comment="no")
    deploy("two")
    assert advance_to_rest(run).status == "cancelled"
    assert trail(run)[3:] == [("gate", "review")]


def test_where_the_old_version_is_still_deployed_its_runs_stay_with_it(deploy: Deploy) -> None:
    run = waiting(deploy)
    deploy("one", "two")
    assert swept(run).status == "waiting"
    assert shown(run)["version"] == "green"
    assert registry.queue_for(run.plan) == "agent.porter.1"
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert SENT == [("1", "About order A-1")]


def test_a_chain_of_upcasters_leads_to_the_newest_version(deploy: Deploy) -> None:
    run = waiting(deploy)
    deploy("three")
    assert registry.queue_for(run.plan) == "agent.porter.3"
    advance_to_rest(swept(run))
    assert (run.plan.version, state(run)["language"]) == ("3", "en")
    assert registry.queue_for(run.plan) == "agent.porter.3"


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("two_raising", "from_1, which brings a state from 1 to 2, raised KeyError: 'answer'."),
        ("two_forgetful", "/text: version 2 has no such field; drop it, or rename it."),
    ],
)
def test_an_upcaster_at_fault_leaves_the_run_as_it_is_and_the_preflight_names_it(
    deploy: Deploy, module: str, why: str
) -> None:
    run = waiting(deploy)
    before = Run.objects.filter(pk=run.pk).values().get()
    deploy(module)
    assert why in preflight_facts.of_gate(open_gate(run)).reasons[0].words
    sweeper = Sweeper()
    assert [sweeper.upgrade(), sweeper.upgrade()] == [0, 0]
    assert [run for run, _ in sweeper.tried.rung] == [run.pk]
    assert Run.objects.filter(pk=run.pk).values().get() == before
    with pytest.raises(CannotResume):
        decide(run)


def test_a_queued_run_that_cannot_be_brought_up_is_not_even_claimed(deploy: Deploy) -> None:
    deploy("one")
    run = make_run("porter", order="A-1")
    deploy("two_raising")
    assert not engine.advance(run.pk)
    run.refresh_from_db()
    assert (run.status, run.token, run.attempts) == ("queued", 0, 0)
    assert preflight_facts.of_run(run).red
    deploy("two")
    assert advance_to_rest(run).status == "waiting"
    assert trail(run)[1] == ("upcast", "find")


def test_a_gate_whose_ways_on_have_no_name_in_the_new_version_takes_no_decision(deploy: Deploy) -> None:
    run = waiting(deploy)
    deploy("two_unnamed")
    (reason,) = preflight_facts.of_gate(open_gate(run)).reasons
    assert reason.colour == "red"
    assert "version 2 has no step propose. Its upcaster from_1 names no other: name its" in reason.words


def test_an_effect_that_was_performed_keeps_its_name(deploy: Deploy) -> None:
    run = waiting(deploy)
    decide(run)
    advance_to_rest(run)
    Run.objects.filter(pk=run.pk).update(status="waiting")
    deploy("two_renaming")
    assert "has performed send, and version 2.1 has no effect send" in preflight_facts.of_run(run).reasons[0].words
    assert swept(run).status == "waiting"


def test_a_decision_that_comes_first_is_not_lost(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at the gate and its withdrawal somebody decides: the outcome is applied, nothing withdrawn."""
    from agents.runner import version_upgrade

    run = waiting(deploy)
    deploy("two")
    swept(run)
    brought = version_upgrade.brought

    def late(*args: Any) -> dict[str, Any]:
        monkeypatch.setattr(version_upgrade, "brought", brought)
        monkeypatch.setattr(version_upgrade, "fault", lambda *_: "")
        if Gate.objects.open().filter(run=run).exists() and Run.objects.get(pk=run.pk).status == "running":
            decide(run, comment="in time")
        return brought(*args)

    monkeypatch.setattr(version_upgrade, "fault", lambda *_: "")
    monkeypatch.setattr(version_upgrade, "brought", late)
    advance(run)
    assert trail(run)[3:] == [("gate", "review"), ("upcast", "send"), ("reopen", "send")]
    assert not Gate.objects.filter(run=run, status="withdrawn").exists()


def test_a_fork_into_another_version_is_brought_up_too(deploy: Deploy) -> None:
    run = waiting(deploy)
    deploy("one", "two")
    made = fork.fork(run, at=2, by=ann(run.team), version="2")
    assert (made.plan.version, made.next_step) == ("2", "draft")
    assert state(made) == {"order": "A-1", "found": "order A-1", "reply": "", "feedback": [], "sent": ""}
    advance_to_rest(made)
    assert state(made)["reply"] == "Dear customer, about order A-1"


GONE = (
    "Version 1 is not deployed; version 2 is, and has no step propose. "
    "Write an upcaster from 1 to 2, or deploy version 1 again."
)


def test_nobody_moves_a_run_that_no_version_would_take_from_there(deploy: Deploy) -> None:
    """It was taken, withdrew the run's gate, and left it queued for ever."""
    run = waiting(deploy)
    deploy("two_bare")
    with pytest.raises(RewindRefused) as refused:
        rewind.rewind(run, to=1, by=ann(run.team))
    assert str(refused.value) == GONE
    with pytest.raises(RewindRefused):
        rewind.edit(run, at=1, patch=[{"op": "replace", "path": "/order", "value": "A-2"}], by=ann(run.team))
    run.refresh_from_db()
    assert (run.status, open_gate(run).status) == ("waiting", "open")
    deploy("two")
    assert advance_to_rest(rewind.rewind(run, to=1, by=ann(run.team))).status == "waiting"
    assert run.plan.version == "2"


def test_nobody_has_settled_what_no_version_could_undo(deploy: Deploy) -> None:
    run = waiting(deploy)
    decide(run)
    advance_to_rest(run)
    rewind.edit(run, at=1, patch=[{"op": "replace", "path": "/order", "value": "A-2"}], by=ann(run.team))
    advance_to_rest(run)
    deploy("two_bare")
    with pytest.raises(RewindRefused) as refused:
        rewind.settle_now(run, by=ann(run.team))
    run.refresh_from_db()
    assert (str(refused.value), run.status, open_gate(run).status) == (GONE, "waiting", "open")


def test_a_process_that_knows_no_version_of_an_agent_leaves_it_to_those_that_do(deploy: Deploy) -> None:
    run = waiting(deploy)
    deploy("settled")
    assert rewind.rewind(run, to=1, by=ann(run.team)).status == "queued"
    assert not engine.advance(run.pk)
    deploy("one")
    assert advance_to_rest(run).status == "waiting"


def test_a_run_is_not_upgraded_before_the_gate_beside_it_is_decided(deploy: Deploy) -> None:
    deploy("one_beside")
    run = advance(make_run("porter", order="7"))
    assert (run.status, run.next_step, open_gate(run).step) == ("waiting", "send", "review")
    asked = open_gate(run)
    deploy("two")
    assert run in version_upgrade.waiting(limit=10)
    assert not version_upgrade.wake(Run.objects.select_related("plan").get(pk=run.pk))
    decide(run)
    run = advance_to_rest(run)
    assert trail(run)[4:6] == [("answered", "review"), ("upcast", "send")]
    assert (run.plan.version, state(run)["reply"]) == ("2", "About order 7")
    asked.refresh_from_db()
    assert asked.status == "decided"
