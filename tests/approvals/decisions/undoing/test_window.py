"""A decision under a policy with an undo window counts at once and takes effect at the end of the window."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from approvals.consequences.errors import RejectionStands
from approvals.decisions.undoing.settle import settle
from approvals.decisions.undoing.take_back import take_back
from approvals.errors import AlreadyDecided, AlreadySaid, GateExpired, NotAllowed, NothingToUndo, NoUndo, UndoTooLate
from approvals.gates import closing
from approvals.models import Decision, Gate, Grant, Outcome
from checkpoints import actors
from checkpoints.errors import NotVerified
from checkpoints.models import Event, Hold, Run
from tests.factories import (
    ann,
    bob,
    change_gate,
    decide,
    edit_amount,
    make_gate,
    make_policy,
    make_team,
    make_user,
    waiting,
)
from tests.harness.altered_rows import altered

from .windows import WINDOW, end_window, make_held, now, pass_window


def kinds(gate: Gate) -> list[str]:
    return list(Event.objects.filter(subject=gate.subject).order_by("id").values_list("kind", flat=True))


def test_nothing_is_let_run_until_the_window_ends() -> None:
    team = make_team()
    gate = make_held(team)
    decide(gate, ann(team))
    held = now(gate)
    assert (held.status, held.settles_as) == ("open", "approved")
    assert held.settles_at is not None
    assert dt.timedelta(0) < held.settles_at - timezone.now() <= WINDOW
    assert not Grant.objects.filter(outcome__gate=gate).exists()
    assert Run.objects.get(pk=gate.run_id).status == "waiting"
    assert Hold.objects.standing().filter(subject=gate.subject).exists()
    assert kinds(gate)[-2:] == ["gate.decided", "gate.settling"]
    assert not settle(held)
    assert now(gate).status == "open"


def test_at_the_end_of_the_window_the_gate_closes_as_it_was_decided_and_the_run_goes_on() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    decide(gate, person)
    assert end_window(gate)
    closed = now(gate)
    assert (closed.status, closed.settles_at, closed.settles_as) == ("decided", None, "")
    outcome = Outcome.objects.get(gate=gate)
    assert (outcome.kind, outcome.by, outcome.grants.count()) == ("approved", f"user:{person.pk}", 2)
    assert [each.user for each in outcome.decisions.all()] == [person]
    assert Run.objects.get(pk=gate.run_id).status == "queued"
    assert not Hold.objects.standing().filter(subject=gate.subject).exists()
    assert kinds(gate)[-1] == "gate.closed"


def test_a_policy_without_a_window_closes_at_once_and_undoes_nothing() -> None:
    team = make_team()
    gate, person = make_gate(team=team), ann(team)
    decide(gate, person)
    assert now(gate).status == "decided"
    with pytest.raises(NoUndo):
        take_back(now(gate), by=person)


def test_whoever_decided_takes_it_back_and_decides_again() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    made = decide(gate, person)
    assert waiting(person) == []
    assert take_back(now(gate), by=person, decision=made.pk) == made
    back = now(gate)
    assert (back.status, back.settles_at, back.settles_as) == ("open", None, "")
    assert not Decision.objects.get(pk=made.pk).counts
    assert kinds(gate)[-2:] == ["gate.undone", "gate.reconsidered"]
    assert waiting(person) == [gate.pk]
    with pytest.raises(NothingToUndo):
        take_back(now(gate), by=person, decision=made.pk)
    decide(gate, person, "reject")
    assert end_window(gate)
    assert Outcome.objects.get(gate=gate).kind == "rejected"


def test_nobody_undoes_anothers_decision() -> None:
    team = make_team()
    gate = make_held(team)
    made = decide(gate, ann(team))
    with pytest.raises(NothingToUndo):
        take_back(now(gate), by=bob(team), decision=made.pk)
    assert Decision.objects.get(pk=made.pk).counts
    refused = Event.objects.filter(subject=gate.subject, kind="decision.refused").last()
    assert refused is not None
    assert b'"kind":"nothing_to_undo"' in bytes(refused.data)


def test_once_it_is_closed_an_undo_is_refused_in_words() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    decide(gate, person)
    end_window(gate)
    with pytest.raises(UndoTooLate, match=r"closed at \d\d:\d\d:\d\d UTC: Approved\. It is too late to undo"):
        take_back(now(gate), by=person)
    with pytest.raises(AlreadyDecided):
        decide(gate, bob(team))


def test_a_rejection_within_the_window_wins_and_has_a_window_of_its_own() -> None:
    team = make_team()
    gate, second = make_held(team), bob(team)
    decide(gate, ann(team))
    pass_window(gate)
    decide(gate, second, "reject")
    held = now(gate)
    assert held.settles_as == "rejected"
    assert held.settles_at is not None
    assert held.settles_at > timezone.now()
    with pytest.raises(AlreadySaid):
        decide(gate, second, "reject")
    take_back(now(gate), by=second)
    again = now(gate)
    assert again.settles_as == "approved"  # by the first, whose approval still counts
    assert end_window(gate)
    assert Outcome.objects.get(gate=gate).kind == "approved"


def test_nobody_approves_or_edits_what_somebody_else_has_rejected() -> None:
    """It was recorded, told as the last approval needed, and the gate closed as rejected."""
    team = make_team()
    gate, first, second = make_held(team), ann(team), bob(team)
    decide(gate, first, "reject")
    at = now(gate).settles_at
    for verdict, said in (("approve", {}), ("edit", {"arguments": edit_amount(gate, "80.00")})):
        with pytest.raises(RejectionStands, match="Ann Okafor rejected this"):
            decide(gate, second, verdict, **said)
    assert (now(gate).settles_at, now(gate).proposal) == (at, 1)
    take_back(now(gate), by=first)
    decide(gate, second)
    assert now(gate).settles_as == "approved"


def test_whoever_rejected_alone_may_still_approve() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    decide(gate, person, "reject")
    decide(gate, person)
    assert now(gate).settles_as == "approved"


def test_an_edit_that_fewer_rejections_reject_is_refused_where_somebody_rejected() -> None:
    """The edit itself closed the gate as rejected, though its sender was shown that it runs."""
    team = make_team()
    rules = [{"name": "large", "when": "amount >= 500", "require": {"denials": 1}}]
    gate = make_gate(policy=make_policy(team, denials=2, rules=rules))
    decide(gate, ann(team), "reject")
    with pytest.raises(RejectionStands):
        decide(gate, bob(team), "edit", arguments=edit_amount(gate, "900.00"))
    assert now(gate).status == "open"


def test_one_more_approval_does_not_prolong_the_window_and_keeps_it_when_the_first_is_undone() -> None:
    team = make_team()
    gate, first = make_held(team), ann(team)
    decide(gate, first)
    at = now(gate).settles_at
    decide(gate, bob(team))
    assert now(gate).settles_at == at
    take_back(now(gate), by=first)
    assert now(gate).settles_at == at
    end_window(gate)
    assert [each.user.first_name for each in Outcome.objects.get(gate=gate).decisions.all()] == ["Bob"]


def test_an_edit_of_an_edit_has_a_window_of_its_own() -> None:
    """It took effect at the end of the first one's window, a moment later, and could hardly be undone."""
    team = make_team()
    gate = make_held(team)
    decide(gate, ann(team), "edit", arguments=edit_amount(gate, "80.00"))
    change_gate(gate, settles_at=timezone.now() + dt.timedelta(seconds=5))
    decide(gate, bob(team), "edit", arguments=edit_amount(gate, "8000.00"))
    at = now(gate).settles_at
    assert at is not None
    assert at - timezone.now() > WINDOW / 2
    assert kinds(gate)[-1] == "gate.settling"


def test_an_edit_within_the_window_makes_a_new_proposal_that_the_others_have_to_approve() -> None:
    team = make_team()
    gate = make_held(team, quorum=2)
    decide(gate, ann(team))
    decide(gate, bob(team))
    assert now(gate).settles_as == "approved"
    third = make_user("Third Person", team)
    decide(gate, third, "edit", arguments=edit_amount(gate, "80.00"))
    held = now(gate)
    assert (held.status, held.settles_at, held.proposal) == ("open", None, 2)
    assert kinds(gate)[-1] == "gate.reconsidered"
    assert not settle(held)


def test_a_vote_of_several_is_taken_back_before_the_others_agree() -> None:
    team = make_team()
    gate, person = make_held(team, quorum=2), ann(team)
    decide(gate, person)
    assert now(gate).settles_at is None
    take_back(now(gate), by=person)
    decide(gate, bob(team))
    assert now(gate).settles_at is None
    decide(gate, person)
    assert now(gate).settles_as == "approved"


def test_a_decision_in_time_counts_though_its_window_ends_after_the_deadline() -> None:
    team = make_team()
    gate = make_held(team, deadline=dt.timedelta(minutes=5))
    decide(gate, ann(team))
    change_gate(gate, deadline=timezone.now() - dt.timedelta(seconds=1))
    assert gate.pk not in Gate.objects.overdue().values_list("pk", flat=True)
    assert closing.expire(now(gate)) is None
    with pytest.raises(GateExpired):
        decide(gate, bob(team), "reject")
    end_window(gate)
    assert Outcome.objects.get(gate=gate).kind == "approved"


def test_undone_after_the_deadline_it_expires() -> None:
    team = make_team()
    gate, person = make_held(team, deadline=dt.timedelta(minutes=5)), ann(team)
    decide(gate, person)
    change_gate(gate, deadline=timezone.now() - dt.timedelta(seconds=1))
    take_back(now(gate), by=person)
    assert closing.expire(now(gate)) is not None
    assert Outcome.objects.get(gate=gate).kind == "expired"


def test_a_run_that_is_cancelled_within_the_window_withdraws_the_gate() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    decide(gate, person)
    assert closing.withdraw(now(gate), by=actors.SYSTEM, reason="The run was cancelled.")
    assert not settle(now(gate))
    with pytest.raises(UndoTooLate, match="Withdrawn"):
        take_back(now(gate), by=person)


def test_the_vote_of_somebody_who_may_no_longer_decide_lapses_at_the_end_of_the_window() -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    decide(gate, person)
    person.groups.clear()
    assert end_window(gate)
    held = now(gate)
    assert (held.status, held.settles_at) == ("open", None)
    assert kinds(gate)[-2:] == ["gate.lapsed", "gate.reconsidered"]
    assert not Decision.objects.get(gate=gate).counts
    assert waiting(bob(team)) == [gate.pk]


def test_of_two_votes_one_lapses_and_the_other_alone_is_enough() -> None:
    team = make_team()
    gate, gone = make_held(team), ann(team)
    decide(gate, gone)
    decide(gate, bob(team))
    gone.groups.clear()
    assert end_window(gate)
    assert [each.user.first_name for each in Outcome.objects.get(gate=gate).decisions.all()] == ["Bob"]


@pytest.mark.parametrize("column", ["settles_at", "settles_as", "vote"])
def test_what_is_altered_within_the_window_is_found_and_nothing_closes(column: str) -> None:
    team = make_team()
    gate, person = make_held(team), ann(team)
    made = decide(gate, person)
    pass_window(gate)
    row = made if column == "vote" else now(gate)
    earlier = timezone.now() - dt.timedelta(hours=1)
    wrong: dict[str, dict[str, Any]] = {"vote": {"comment": b"Forged."}, "settles_as": {"settles_as": "edited"}}
    with altered(row, **wrong.get(column, {"settles_at": earlier})):
        with pytest.raises(NotVerified):
            settle(now(gate))
        if column != "vote":
            with pytest.raises(NotVerified):
                take_back(now(gate), by=person)
        assert now(gate).status == "open"
    assert settle(now(gate))


def test_a_forged_end_of_a_window_closes_nothing() -> None:
    """Somebody with the database alone writes the columns of a decision that nobody made."""
    gate = make_held(make_team())
    past = timezone.now() - dt.timedelta(seconds=1)
    with altered(gate, settles_at=past, settles_as="approved"), pytest.raises(NotVerified):
        settle(now(gate))
    assert not Outcome.objects.filter(gate=gate).exists()


def test_policies_made_before_are_without_a_window() -> None:
    assert make_policy(make_team()).undo_window is None


def test_who_may_not_decide_is_told_so() -> None:
    team = make_team(may=("checkpoints.view_run",))
    with pytest.raises(NotAllowed):
        take_back(make_held(team), by=make_user("Rita Reader", team))
