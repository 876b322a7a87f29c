"""Holdpoint moves no gate on behalf of whoever altered its row, and asks no team that a row alone names.

Somebody with the application's role altered who had asked, inserted a claim that had lapsed, and had the sweeper write
a proven event over the altered row; the same with an escalation, which asked another team as well.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import Group
from django.db.models.functions import Now

from approvals.assignments import claims, reassigning
from approvals.audit import evidence
from approvals.errors import NotVerifiable
from approvals.gates import closing
from approvals.gates.reading import read
from approvals.models import AddedTeam, Escalation, Gate, GateClaim
from checkpoints.actors import SYSTEM
from checkpoints.audit import covered_rows
from checkpoints.errors import NotVerified
from tests.approvals.assignments.test_escalating import escalates as make_policy
from tests.approvals.assignments.test_escalating import fresh, level
from tests.factories import ann, change_gate, make_gate, make_team, make_user, mira
from tests.factories import decide as say
from tests.harness.altered_rows import altered, owner

HOUR = dt.timedelta(hours=1)


def lapses(gate: Gate) -> None:
    gone = Now() - HOUR
    GateClaim.objects.create(gate=gate, user=ann(gate.team), since=gone, until=gone)
    claims.lapse(gate.pk)


def escalates(gate: Gate) -> None:
    level = Escalation.objects.filter(gate=gate, due_at__isnull=False)[0]
    with pytest.raises(NotVerified):
        reassigning.escalate(level)


def passes_its_deadline(gate: Gate) -> None:
    with pytest.raises(NotVerified):
        reassigning.pass_deadline(gate)


def is_withdrawn(gate: Gate) -> None:
    closing.withdraw(gate, by=SYSTEM, reason="Not needed.")


@pytest.fixture
def other() -> Group:
    return make_team("Finance")


@pytest.fixture
def gate(other: Group) -> Iterator[Gate]:
    """One whose policy goes to another team after an hour, and at the deadline; both are due."""
    policy = make_policy(make_team(), level(other), level(other, None, 60), deadline=HOUR)
    made = make_gate(policy=policy)
    change_gate(made, deadline=dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
    Escalation.objects.filter(gate=made, due_at__isnull=False).update(due_at=Now() - HOUR)
    yield made
    if covered_rows.check_run(made.run_id):
        change_gate(made)  # as it is left, for whoever verifies everything afterwards


@pytest.mark.parametrize("moves", [lapses, escalates, passes_its_deadline, closing.expire, is_withdrawn])
def test_who_altered_a_gate_gets_no_proof_of_it(gate: Gate, moves: Callable[[Gate], object]) -> None:
    row = Gate.objects.get(pk=gate.pk)
    with altered(row, asked_by_id=make_user("Eve", gate.team).pk, risk="low"):
        moves(gate)
        if moves in (escalates, passes_its_deadline):  # what is planned is not dropped: the row may be put back
            assert Escalation.objects.filter(gate=gate, status=Escalation.Status.PLANNED).count() == 2
        assert not evidence.vouch(read(gate.pk).proposal)
        assert any(f"gate {gate.pk}" in str(each) for each in covered_rows.check_run(gate.run_id))
        with pytest.raises(NotVerifiable):
            say(fresh(gate), ann(gate.team))
        assert not AddedTeam.objects.filter(gate=gate).exists()


def planned(gate: Gate, team: Group, **more: object) -> Escalation:
    """A level as the application's role writes one: a row, which no policy plans."""
    return Escalation.objects.create(gate=gate, number=1, team=team, **{"due_at": Now() - HOUR, **more})


@pytest.mark.parametrize("more", [{}, {"due_at": None, "extend": HOUR}], ids=["in time", "at the deadline"])
def test_a_level_that_no_policy_plans_asks_nobody(other: Group, more: dict[str, object]) -> None:
    gate = make_gate(policy=make_policy(make_team(), deadline=HOUR))
    level = planned(gate, other, **more)
    if more:
        closing.pass_deadline(gate)
        reassigning.pass_deadline(gate)
    else:
        assert not reassigning.escalate(level)
    level.refresh_from_db()
    assert level.status == Escalation.Status.DROPPED
    assert not AddedTeam.objects.filter(gate=gate).exists()
    assert fresh(gate).reviewer_ids == [gate.team_id]


def test_a_team_that_a_row_alone_added_does_not_decide(other: Group) -> None:
    """Nobody was told of it, and a verification found nothing."""
    gate = make_gate(policy=make_policy(make_team()))
    AddedTeam.objects.create(gate=gate, team=other, by="user:1")
    with pytest.raises(NotVerifiable):
        say(fresh(gate), mira(other))
    assert any(str(each).startswith(f"added {gate.pk}") for each in covered_rows.check_run(gate.run_id))
    with owner() as made:
        made.execute("DELETE FROM approvals_addedteam WHERE gate_id = %s", [gate.pk])
    assert covered_rows.check_run(gate.run_id) == []
    say(fresh(gate), ann(gate.team))
