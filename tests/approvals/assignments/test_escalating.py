"""A gate that nobody decides goes to the next team, in time or at its deadline, and expires after the last."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db.models.functions import Now
from django.utils import timezone

from agents.serving.sweeper import Sweeper
from approvals.assignments import escalating
from approvals.errors import GateExpired
from approvals.gates import closing
from approvals.models import AddedTeam, Calendar, Decision, Escalation, Gate, Policy
from checkpoints.models import Event
from checkpoints.values.canonical_json import decode_canonical
from tests.approvals.views.test_merging_drafts import page_of
from tests.factories import ann, decide, make_gate, make_policy, make_team, make_user, mira, waiting
from tests.harness.racing_threads import race

HOUR = 3600


def escalates(team: Group, *levels: dict[str, Any], **settings: Any) -> Policy:
    policy = make_policy(team, **settings)
    Policy.objects.filter(pk=policy.pk).update(escalation=list(levels))
    policy.refresh_from_db()
    return policy


def level(team: Group, after: int | None = HOUR, extend: int | None = None) -> dict[str, Any]:
    return {"team": team.pk, "after": after, "extend": extend}


def make_due(gate: Gate) -> None:
    Escalation.objects.filter(gate=gate, due_at__isnull=False).update(due_at=Now() - timedelta(seconds=1))


def fresh(gate: Gate) -> Gate:
    return Gate.objects.select_related("run__plan", "policy", "team").get(pk=gate.pk)


def told(gate: Gate) -> list[tuple[Any, Any]]:
    found = Event.objects.filter(subject=gate.subject, kind="gate.escalated").order_by("pk")
    return [(data["level"], data["team"]) for each in found for data in [decode_canonical(bytes(each.data))]]


def test_the_next_team_sees_and_decides_it_from_then_on_and_no_sooner() -> None:
    team, directors = make_team(), make_team("Directors")
    gate = make_gate(policy=escalates(team, level(directors)))
    boss = make_user("Dora Director", directors)
    assert not Gate.objects.visible_to(boss).filter(pk=gate.pk).exists()
    assert Sweeper().escalate() == 0
    make_due(gate)
    assert Sweeper().escalate() == 1
    assert Sweeper().escalate() == 0
    assert told(gate) == [(1, directors.name)]
    assert Gate.objects.visible_to(boss).filter(pk=gate.pk).exists()
    assert gate.pk in waiting(boss)
    assert gate.pk in waiting(ann(team))
    decide(fresh(gate), boss)
    assert fresh(gate).status == "decided"
    assert not AddedTeam.objects.filter(gate=gate, open=True).exists()
    assert Gate.objects.visible_to(boss).filter(pk=gate.pk).exists()


def test_events_after_it_reach_the_team_too() -> None:
    team, directors = make_team(), make_team("Directors")
    gate = make_gate(policy=escalates(team, level(directors), quorum=2))
    make_due(gate)
    Sweeper().escalate()
    decide(fresh(gate), ann(team))
    said = decode_canonical(bytes(Event.objects.get(subject=gate.subject, kind="gate.decided").data))
    assert said["reviewers"] == [team.pk, directors.pk]


def test_at_the_deadline_it_goes_on_level_by_level_and_then_expires() -> None:
    Sweeper().expire_gates()  # those that other tests left are overdue, too
    team, leads, directors = make_team(), make_team("Leads"), make_team("Directors")
    gate = make_gate(
        policy=escalates(team, level(leads, None, HOUR), level(directors, None, 2 * HOUR), deadline=timedelta(hours=1))
    )
    for number, (group, hours) in enumerate(((leads, 1), (directors, 2)), 1):
        closing.pass_deadline(gate)
        with pytest.raises(GateExpired):
            decide(fresh(gate), ann(team))
        assert Sweeper().expire_gates() == 1
        now = fresh(gate)
        assert now.status == "open"
        assert now.deadline is not None
        assert abs(now.deadline - timezone.now() - timedelta(hours=hours)) < timedelta(minutes=1)
        assert told(gate)[-1] == (number, group.name)
    closing.pass_deadline(gate)
    assert Sweeper().expire_gates() == 1
    assert fresh(gate).status == "expired"
    assert len(told(gate)) == 2


def test_a_level_without_more_time_is_told_and_the_gate_expires_with_it() -> None:
    Sweeper().expire_gates()
    team, leads = make_team(), make_team("Leads")
    gate = make_gate(policy=escalates(team, level(leads, None, None), deadline=timedelta(hours=1)))
    closing.pass_deadline(gate)
    sweeper = Sweeper()
    assert sweeper.expire_gates() + sweeper.expire_gates() == 2
    assert (fresh(gate).status, told(gate)) == ("expired", [(1, leads.name)])


def test_a_level_that_the_deadline_forestalls_is_told_of_only_where_the_deadline_moves() -> None:
    """The page said to whom the gate goes an hour after it had expired."""
    team, leads = make_team(), make_team("Leads")
    late, moves = level(leads, 2 * HOUR), level(leads, None, 3 * HOUR)
    for number, (levels, said) in enumerate((([late], False), ([late, moves], True))):
        policy = escalates(team, *levels, deadline=timedelta(hours=1), name=f"late-{number}")
        page = page_of(ann(team), make_gate(policy=policy))
        assert ("it goes to" in page) is said
        assert "Goes to" not in page


def test_a_gate_that_closed_is_escalated_no_more() -> None:
    team, leads = make_team(), make_team("Leads")
    gate = make_gate(policy=escalates(team, level(leads)))
    planned = Escalation.objects.get(gate=gate)
    decide(gate, ann(team))
    assert Escalation.objects.get(gate=gate).status == "dropped"
    make_due(gate)
    assert Sweeper().escalate() == 0
    assert not escalating.escalate(planned)
    assert told(gate) == []


def test_two_sweepers_and_a_decision_at_once_leave_one_truth() -> None:
    team, leads = make_team(), make_team("Leads")
    policy, one = escalates(team, level(leads)), ann(team)
    for _ in range(6):
        gate = make_gate(policy=policy)
        planned = Escalation.objects.get(gate=gate)
        results = race(
            [partial(escalating.escalate, planned), partial(escalating.escalate, planned), partial(decide, gate, one)]
        )
        assert isinstance(results[2], Decision)
        assert fresh(gate).status == "decided"
        assert len(told(gate)) == results[:2].count(True) <= 1
        assert Escalation.objects.get(gate=gate).status == ("done" if told(gate) else "dropped")


def test_a_deadline_that_two_sweepers_meet_moves_once() -> None:
    team, leads, directors = make_team(), make_team("Leads"), make_team("Directors")
    policy = escalates(team, level(leads, None, HOUR), level(directors, None, HOUR), deadline=timedelta(hours=1))
    gate = make_gate(policy=policy)
    closing.pass_deadline(gate)
    results = race([partial(escalating.pass_deadline, gate) for _ in range(3)])
    assert sorted(results) == [False, False, True]
    assert told(gate) == [(1, leads.name)]


def test_a_crash_between_the_steps_of_an_escalation_leaves_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    team, leads = make_team(), make_team("Leads")
    gate = make_gate(policy=escalates(team, level(leads)))
    make_due(gate)
    version = fresh(gate).version
    with monkeypatch.context() as broken:
        broken.setattr(Gate, "say", lambda *args, **kwargs: 1 / 0)
        assert Sweeper().escalate() == 0
    assert (fresh(gate).version, AddedTeam.objects.filter(gate=gate).count()) == (version, 0)
    assert Sweeper().escalate() == 1


def test_times_count_by_the_policys_calendar() -> None:
    team, leads = make_team(), make_team("Leads")
    policy = escalates(team, level(leads, 2 * HOUR), deadline=timedelta(hours=3))
    always = {day: [["00:00", "24:00"]] for day in ("mon", "tue", "wed", "thu", "fri", "sat", "sun")}
    off = [(timezone.now() + timedelta(days=days)).date() for days in range(-1, 3)]
    calendar = Calendar.objects.create(team=team, name="office", hours=always, days_off=off)
    Policy.objects.filter(pk=policy.pk).update(calendar=calendar)
    gate = make_gate(policy=policy)
    first = datetime.combine(off[-1] + timedelta(days=1), datetime.min.time(), timezone.get_default_timezone())
    assert gate.deadline == first + timedelta(hours=3)
    assert Escalation.objects.get(gate=gate).due_at == first + timedelta(hours=2)


def test_an_added_team_has_no_say_at_other_gates_of_the_policy() -> None:
    team, directors = make_team(), make_team("Directors")
    policy = escalates(team, level(directors))
    gate, other = make_gate(policy=policy), make_gate(policy=policy)
    make_due(gate)
    Sweeper().escalate()
    boss = mira(directors)
    assert waiting(boss) == [gate.pk]
    assert not Gate.objects.visible_to(boss).filter(pk=other.pk).exists()
