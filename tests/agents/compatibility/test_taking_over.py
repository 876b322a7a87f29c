"""Version 1 waits, version 2 is deployed: nothing is decided into the void, and with an upcaster everything goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents import Agent
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
from tests.agents.compatibility import SENT, porter, shop
from tests.agents.compatibility.conftest import Deploy
from tests.factories import ann
from tests.factories.driven_runs import advance, advance_to_rest, decide, make_run, open_gate, state, trail

GONE = (
    "Version 1 is not deployed; version 2 is, and has no step propose. "
    "Write an upcaster from 1 to 2, or deploy version 1 again."
)


def waiting(deploy: Deploy, order: str = "A-1") -> Run:
    """A run of version 1 that stands at its gate."""
    deploy(porter.One)
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
    deploy(porter.TwoBare)
    found = preflight_facts.of_gate(open_gate(run))
    assert [each.words for each in found.findings if each.colour == "red"] == [GONE]
    for verdict in ("approve", "reject"):
        with pytest.raises(CannotResume, match="cancel the run instead"):
            decide(run, verdict)
    assert open_gate(run).decisions.count() == 0
    told = Event.objects.filter(run_id=run.pk, kind="decision.refused").first()
    assert told is not None
    assert decode_canonical(bytes(told.data)) == {"kind": "cannot_resume", "verdict": "approve", "checks": ["version"]}


def test_with_the_upcaster_written_every_waiting_run_resumes_to_its_end(deploy: Deploy) -> None:
    runs = [waiting(deploy, order) for order in ("A-1", "A-2")]
    gates = [open_gate(run) for run in runs]
    deploy(porter.TwoBare)
    assert [swept(run).status for run in runs] == ["waiting"] * 2
    deploy(porter.Two)
    found = preflight_facts.of_gate(gates[0])
    assert found.colour == "amber"
    assert "upcaster from_1 runs first. propose is now draft." in found.reasons[0].words
    assert Sweeper().upgrade() == 2
    for run, gate in zip(runs, gates, strict=True):
        advance_to_rest(run)
        gate.refresh_from_db()
        assert gate.status == "withdrawn"
        assert "Version 2 of porter takes the run over" in gate.outcome.words
        checks = ("checkpoint", "version", "state", "configuration", "libraries", "artifacts")
        assert shown(run) == dict.fromkeys(checks, "green")
        assert run.plan.version == "2"
        assert trail(run)[2:] == [("step", "propose"), ("upcast", "review")]
        kinds = Event.objects.filter(run_id=run.pk).order_by("id").values_list("kind", flat=True)
        assert list(kinds)[-8:] == [
            "run.queued", "run.running", "gate.withdrawn", "checkpoint.saved", "run.upcast", "gate.opened",
            "gate.replaced", "run.waiting",
        ]  # fmt: skip
        note = run.notes.get(checkpoint=Checkpoint.objects.get(run=run, kind="upcast").id)
        assert bytes(note.text) == b"Upgraded from version 1 to 2 by from_1. propose is now draft."
        decide(run)
        assert advance_to_rest(run).status == "completed"
    assert [f"2: About order A-{number}" for number in (1, 2)] == SENT
    assert not [fault for run in runs for fault in verify_run(run)]


def test_sent_back_it_goes_to_the_step_by_its_new_name_and_to_before_the_upcast_it_is_brought_up_again(
    deploy: Deploy,
) -> None:
    run = waiting(deploy)
    deploy(porter.Two)
    advance_to_rest(swept(run))
    decide(run, "reject", then="back", back_to="draft", comment="in French")
    advance_to_rest(run)
    assert state(run)["reply"] == "Dear customer, about order A-1 in French"
    assert open_gate(run).title == "Send it?"
    decide(run, "reject", then="back", back_to="find", comment="look again")
    advance_to_rest(run)
    assert run.plan.version == "2"
    assert trail(run)[-5:] == [
        ("gate", "review"), ("rewind", "review"), ("upcast", "find"), ("step", "find"), ("step", "draft"),
    ]  # fmt: skip
    assert state(run)["reply"].endswith("look again")


def test_an_approval_that_was_not_applied_yet_is_applied_and_then_asked_again_for_the_new_version(
    deploy: Deploy,
) -> None:
    run = waiting(deploy)
    decide(run, "edit", arguments={"text": "Bonjour"})
    deploy(porter.Two)
    advance_to_rest(run)
    assert SENT == []
    assert trail(run)[3:] == [("gate", "review"), ("upcast", "send"), ("reopen", "send")]
    assert state(run)["reply"] == "Bonjour"
    changes = (open_gate(run).asked.reopened or {})["changes"]
    assert ("/version", "1", "2") in [(row["pointer"], row["before"], row["after"]) for row in changes]
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert SENT == ["2: Bonjour"]


def test_a_rejection_that_was_not_applied_yet_goes_back_with_its_feedback(deploy: Deploy) -> None:
    run = waiting(deploy)
    decide(run, "reject", then="back", back_to="propose", comment="shorter")
    deploy(porter.Two)
    advance_to_rest(run)
    assert trail(run)[3:] == [("gate", "review"), ("rewind", "review"), ("upcast", "draft"), ("step", "draft")]
    assert state(run)["reply"] == "Dear customer, about order A-1 shorter"


def test_a_rejection_that_goes_back_to_before_an_upgrade_is_brought_up_from_there(deploy: Deploy) -> None:
    """The upcaster from the version of the gate was called with a state of the version before that.

    And the record of the step, of the same code on the same input, was taken: what stood before it was the upcast.
    """
    run = waiting(deploy)
    deploy(porter.TwoAlike)
    advance_to_rest(swept(run))
    decide(run, "reject", then="back", back_to="find", comment="look again")
    deploy(porter.ThreeAlike)
    advance_to_rest(run)
    assert trail(run)[5:] == [("rewind", "review"), ("upcast", "find"), ("step", "find"), ("step", "propose")]
    told = Event.objects.filter(run_id=run.pk, kind="run.upcast").order_by("pk").values_list("data", flat=True)
    assert [decode_canonical(bytes(data))["upcasters"] for data in told] == [["from_1"], ["from_1", "from_2"]]


def test_a_rejection_that_ends_the_run_ends_it_without_any_code(deploy: Deploy) -> None:
    run = waiting(deploy)
    decide(run, "reject", then="stop", comment="no")
    deploy(porter.Two)
    assert advance_to_rest(run).status == "cancelled"
    assert trail(run)[3:] == [("gate", "review")]


def test_where_the_old_version_is_still_deployed_its_runs_stay_with_it(deploy: Deploy) -> None:
    run = waiting(deploy)
    deploy(porter.One, porter.Two)
    assert swept(run).status == "waiting"
    assert shown(run)["version"] == "green"
    assert registry.queue_for(run.plan) == "agent.porter.1"
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert SENT == ["1: About order A-1"]


@pytest.mark.parametrize(
    ("version", "why"),
    [
        (porter.TwoRaising, "from_1, which brings a state from 1 to 2, raised KeyError: 'answer'."),
        (porter.TwoForgetful, "/text: version 2 has no such field; drop it, or rename it."),
    ],
)
def test_an_upcaster_at_fault_leaves_the_run_as_it_is_and_the_preflight_names_it(
    deploy: Deploy, version: type[Agent], why: str
) -> None:
    run = waiting(deploy)
    before = Run.objects.filter(pk=run.pk).values().get()
    deploy(version)
    assert why in preflight_facts.of_gate(open_gate(run)).reasons[0].words
    sweeper = Sweeper()
    assert [sweeper.upgrade(), sweeper.upgrade()] == [0, 0]
    assert [run for run, _ in sweeper.tried.rung] == [run.pk]
    assert Run.objects.filter(pk=run.pk).values().get() == before
    with pytest.raises(CannotResume):
        decide(run)


def test_a_queued_run_that_cannot_be_brought_up_is_not_even_claimed(deploy: Deploy) -> None:
    deploy(porter.One)
    run = make_run("porter", order="A-1")
    deploy(porter.TwoRaising)
    assert not engine.advance(run.pk)
    run.refresh_from_db()
    assert (run.status, run.token, run.attempts) == ("queued", 0, 0)
    assert preflight_facts.of_run(run).red
    deploy(porter.Two)
    assert advance_to_rest(run).status == "waiting"
    assert trail(run)[1] == ("upcast", "find")


def test_a_gate_whose_ways_on_have_no_name_in_the_new_version_takes_no_decision(deploy: Deploy) -> None:
    run = waiting(deploy)
    deploy(porter.TwoUnnamed)
    (reason,) = preflight_facts.of_gate(open_gate(run)).reasons
    assert reason.colour == "red"
    assert "version 2 has no step propose. Its upcaster from_1 names no other: name its" in reason.words


def test_an_effect_that_was_performed_keeps_its_name(deploy: Deploy) -> None:
    run = waiting(deploy)
    decide(run)
    advance_to_rest(run)
    Run.objects.filter(pk=run.pk).update(status="waiting")
    deploy(porter.TwoRenaming)
    assert "has performed send, and version 2.1 has no effect send" in preflight_facts.of_run(run).reasons[0].words
    assert swept(run).status == "waiting"


def test_a_decision_that_comes_first_is_not_lost(deploy: Deploy, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the look at the gate and its withdrawal somebody decides: the outcome is applied, nothing withdrawn."""
    run = waiting(deploy)
    deploy(porter.Two)
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
    deploy(porter.One, porter.Two)
    made = fork.fork(run, at=2, by=ann(run.team), version="2")
    assert (made.plan.version, made.next_step) == ("2", "draft")
    assert state(made) == {"order": "A-1", "found": "order A-1", "reply": "", "feedback": [], "sent": ""}
    advance_to_rest(made)
    assert state(made)["reply"] == "Dear customer, about order A-1"


def test_nobody_moves_a_run_that_no_version_would_take_from_there(deploy: Deploy) -> None:
    """It was taken, withdrew the run's gate, and left it queued for ever; nor is what it left behind undone."""
    run = waiting(deploy)
    decide(run)
    advance_to_rest(run)
    patch = [{"op": "replace", "path": "/order", "value": "A-2"}]
    by = ann(run.team)
    rewind.edit(run, at=1, patch=patch, by=by)
    advance_to_rest(run)
    deploy(porter.TwoBare)
    moves: list[Callable[[], object]] = [
        lambda: rewind.rewind(run, to=1, by=by),
        lambda: rewind.edit(run, at=1, patch=patch, by=by),
        lambda: rewind.settle_now(run, by=by),
    ]
    for move in moves:
        with pytest.raises(RewindRefused) as refused:
            move()
        assert str(refused.value) == GONE
    run.refresh_from_db()
    assert (run.status, open_gate(run).status) == ("waiting", "open")
    deploy(porter.Two)
    assert advance_to_rest(rewind.rewind(run, to=1, by=by)).status == "waiting"
    assert run.plan.version == "2"


def test_a_process_that_knows_no_version_of_an_agent_leaves_it_to_those_that_do(deploy: Deploy) -> None:
    run = waiting(deploy)
    deploy(shop.One)
    assert rewind.rewind(run, to=1, by=ann(run.team)).status == "queued"
    assert not engine.advance(run.pk)
    deploy(porter.One)
    assert advance_to_rest(run).status == "waiting"


def test_a_run_is_not_upgraded_before_the_gate_beside_it_is_decided(deploy: Deploy) -> None:
    deploy(porter.OneBeside)
    run = advance(make_run("porter", order="7"))
    assert (run.status, run.next_step, open_gate(run).step) == ("waiting", "send", "review")
    asked = open_gate(run)
    deploy(porter.Two)
    assert run in version_upgrade.waiting(limit=10)
    assert not version_upgrade.wake(Run.objects.select_related("plan").get(pk=run.pk))
    decide(run)
    run = advance_to_rest(run)
    assert trail(run)[4:6] == [("answered", "review"), ("upcast", "send")]
    assert (run.plan.version, state(run)["reply"]) == ("2", "About order 7")
    asked.refresh_from_db()
    assert asked.status == "decided"
