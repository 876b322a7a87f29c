"""A gate that asks no more takes no decision, and a decision for one gate is none for another."""

from __future__ import annotations

import pytest

from approvals.errors import AlreadyDecided, EditRefused, GateExpired, GateWithdrawn, Invalid, NotVerifiable, StaleGate
from approvals.gates import closing
from approvals.gates.closing import pass_deadline
from approvals.models import Gate
from checkpoints import actors
from checkpoints.models import Checkpoint, EventText, Hold
from tests.factories import ann, bob, decide, edit_amount, make_gate, make_policy, make_run, make_team


def test_a_decided_gate_says_who_decided_it_and_how() -> None:
    team = make_team()
    gate = make_gate(team=team)
    decide(gate, ann(team), "reject")
    with pytest.raises(AlreadyDecided, match="Ann Okafor already decided this: Rejected"):
        decide(gate, bob(team))


def test_a_withdrawn_gate_says_why() -> None:
    team = make_team()
    gate = make_gate(team=team)
    outcome = closing.withdraw(gate, by=actors.SYSTEM, reason="the run went another way")
    assert outcome is not None
    assert (outcome.kind, outcome.grants.count()) == ("withdrawn", 0)
    assert closing.withdraw(gate, by=actors.SYSTEM, reason="again") is None
    with pytest.raises(GateWithdrawn, match="the run went another way"):
        decide(gate, ann(team))


def test_an_expired_gate_says_so() -> None:
    team = make_team()
    gate = make_gate(team=team)
    pass_deadline(gate)
    closing.expire(gate)
    with pytest.raises(GateExpired):
        decide(gate, ann(team))


def test_a_decision_made_on_another_gates_page_does_not_count_here() -> None:
    team = make_team()
    looked_at, other = make_gate(team=team), make_gate(team=team)
    with pytest.raises(StaleGate):
        decide(other, ann(team), seen=bytes(looked_at.standing().digest))
    assert Gate.objects.get(pk=other.pk).status == "open"


def test_a_decision_cannot_be_replayed_on_the_next_gate_of_the_same_run_and_plan() -> None:
    team = make_team()
    run = make_run(team=team)
    gate = make_gate(run=run)
    again = make_gate(run=make_run(team=team, plan=run.plan))
    assert bytes(gate.standing().digest) != bytes(again.standing().digest)


@pytest.mark.parametrize("end", ["approve", "reject", "withdraw", "expire"])
def test_the_hold_lives_as_long_as_the_gate_is_open(end: str) -> None:
    team = make_team()
    gate = make_gate(team=team)
    hold = Hold.objects.get(subject=gate.subject)
    assert (hold.freed_at, hold.checkpoint, hold.run_id) == (None, gate.checkpoint, gate.run_id)
    if end == "withdraw":
        closing.withdraw(gate, by=actors.SYSTEM, reason="no need")
    elif end == "expire":
        pass_deadline(gate)
        closing.expire(gate)
    else:
        decide(gate, ann(team), end)
    assert not Hold.objects.standing().filter(subject=gate.subject).exists()


def test_the_hold_stays_while_a_quorum_is_short() -> None:
    team = make_team()
    gate = make_gate(policy=make_policy(team, quorum=2))
    decide(gate, ann(team))
    assert Hold.objects.standing().filter(subject=gate.subject).count() == 1


def test_nothing_is_decided_on_a_state_that_does_not_verify() -> None:
    team = make_team()
    gate = make_gate(team=team)
    saved = Checkpoint.objects.filter(pk=gate.checkpoint)
    digest = bytes(saved.get().state_digest)
    saved.update(state_digest=bytes(32))
    with pytest.raises(NotVerifiable):
        decide(gate, ann(team))
    saved.update(state_digest=digest)  # other tests verify every run that is there
    assert Gate.objects.get(pk=gate.pk).status == "open"


def test_a_comment_is_kept_apart_from_its_event_so_that_it_can_be_erased() -> None:
    team = make_team()
    gate = make_gate(team=team)
    decision = decide(gate, ann(team), comment="Marit was very patient 🙂")
    words = EventText.objects.get(event__subject=gate.subject, event__kind="gate.decided")
    assert bytes(words.text).decode() == decision.words == "Marit was very patient 🙂"
    assert b"patient" not in bytes(words.event.data)


@pytest.mark.parametrize(
    ("said", "pointer"),
    [
        ({"verdict": "allow"}, "/verdict"),
        ({"key": ""}, "/key"),
        ({"key": "k" * 81}, "/key"),
        ({"key": "a\0b"}, "/key"),
        ({"comment": "half a smile \ud83d"}, "/comment"),
        ({"comment": "x" * 20_001}, "/comment"),
        ({"verdict": "answer", "answer": {"choice": "again"}}, ""),
        ({"answer": {"choice": "again"}}, "/answer"),
        ({"verdict": "reject", "then": "delete"}, "/then"),
        ({"verdict": "reject", "then": "back", "back_to": "pay"}, "/back_to"),
    ],
)
def test_a_decision_that_makes_no_sense_is_refused_by_place(said: dict[str, object], pointer: str) -> None:
    team = make_team()
    gate = make_gate(team=team)
    with pytest.raises(Invalid) as caught:
        decide(gate, ann(team), **said)  # type: ignore[arg-type]
    assert [error["pointer"] for error in caught.value.errors] == [pointer]
    assert not gate.decisions.exists()


def test_new_values_under_an_approval_are_refused_not_passed_over() -> None:
    team = make_team()
    gate = make_gate(team=team)
    with pytest.raises(EditRefused, match="Only an edit takes new values"):
        decide(gate, ann(team), "approve", arguments=edit_amount(gate, "1.00"))
    assert Gate.objects.get(pk=gate.pk).status == "open"
