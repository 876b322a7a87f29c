"""A gate that nobody decides goes to the next team, in time or at its deadline, as the administration has it."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from django import forms
from django.contrib.auth.models import Group
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from agents.serving.sweeper import Sweeper
from approvals.admin.calendars import DaysOff, Hours
from approvals.admin.policy_form import EscalationField
from approvals.assignments import reassigning
from approvals.errors import GateExpired
from approvals.gates import closing
from approvals.models import AddedTeam, Calendar, Decision, Escalation, Gate, Policy, PolicyChange
from approvals.policy.working_time import DAYS
from approvals.policy_changes import changes
from checkpoints.actors import SYSTEM
from checkpoints.models import Event
from checkpoints.values.canonical_json import decode_canonical
from tests.config.administration.forms import POLICY
from tests.factories import ann, decide, make_gate, make_policy, make_team, make_user, waiting
from tests.harness.racing_threads import race
from tests.harness.session import ROOT
from tests.harness.signed_in_clients import confirmed, signed_in

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


def test_the_next_team_sees_and_decides_it_from_then_on_and_no_sooner_unless_it_is_closed() -> None:
    team, directors = make_team(), make_team("Directors")
    policy = escalates(team, level(directors))
    gate, beside = make_gate(policy=policy), make_gate(policy=policy)
    boss = make_user("Dora Director", directors)
    assert not Gate.objects.visible_to(boss).filter(pk=gate.pk).exists()
    assert Sweeper().escalate() == 0
    make_due(gate)
    assert Sweeper().escalate() == 1
    assert Sweeper().escalate() == 0
    assert told(gate) == [(1, directors.name)]
    assert Gate.objects.visible_to(boss).filter(pk=gate.pk).exists()
    assert waiting(boss) == [gate.pk]
    assert not Gate.objects.visible_to(boss).filter(pk=beside.pk).exists()
    assert gate.pk in waiting(ann(team))
    decide(fresh(gate), boss)
    assert fresh(gate).status == "decided"
    assert not AddedTeam.objects.filter(gate=gate, open=True).exists()
    assert Gate.objects.visible_to(boss).filter(pk=gate.pk).exists()
    planned = Escalation.objects.get(gate=beside)
    decide(beside, ann(team))
    assert Escalation.objects.get(gate=beside).status == "dropped"
    assert not reassigning.escalate(planned)
    assert told(beside) == []


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


def test_two_sweepers_and_a_decision_at_once_leave_one_truth() -> None:
    team, leads = make_team(), make_team("Leads")
    policy, one = escalates(team, level(leads)), ann(team)
    for _ in range(2):
        gate = make_gate(policy=policy)
        planned = Escalation.objects.get(gate=gate)
        results = race(
            [partial(reassigning.escalate, planned), partial(reassigning.escalate, planned), partial(decide, gate, one)]
        )
        assert isinstance(results[2], Decision)
        assert fresh(gate).status == "decided"
        assert len(told(gate)) == results[:2].count(True) <= 1
        assert Escalation.objects.get(gate=gate).status == ("done" if told(gate) else "dropped")
    levels = [level(each, None, HOUR) for each in (leads, make_team("Directors"))]
    gate = make_gate(policy=escalates(make_team(), *levels, deadline=timedelta(hours=1)))
    closing.pass_deadline(gate)
    results = race([partial(reassigning.pass_deadline, gate) for _ in range(3)])
    assert sorted(results) == [False, False, True]
    assert told(gate) == [(1, leads.name)]


def test_a_crash_between_the_steps_of_an_escalation_leaves_nothing_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    team, leads = make_team(), make_team("Leads")
    gate = make_gate(policy=escalates(team, level(leads)))
    make_due(gate)
    version = fresh(gate).version
    with monkeypatch.context() as broken:
        broken.setattr(Gate, "entry", lambda *args, **kwargs: 1 / 0)
        assert Sweeper().escalate() == 0
    assert (fresh(gate).version, AddedTeam.objects.filter(gate=gate).count()) == (version, 0)
    assert Sweeper().escalate() == 1


def test_times_count_by_the_policys_calendar() -> None:
    team, leads = make_team(), make_team("Leads")
    policy = escalates(team, level(leads, 2 * HOUR), deadline=timedelta(hours=3))
    always = {day: [["00:00", "24:00"]] for day in DAYS}
    off = [(timezone.now() + timedelta(days=days)).date() for days in range(-1, 3)]
    calendar = Calendar.objects.create(team=team, name="office", hours=always, days_off=off)
    Policy.objects.filter(pk=policy.pk).update(calendar=calendar)
    gate = make_gate(policy=policy)
    first = datetime.combine(off[-1] + timedelta(days=1), datetime.min.time(), timezone.get_default_timezone())
    assert gate.deadline == first + timedelta(hours=3)
    assert Escalation.objects.get(gate=gate).due_at == first + timedelta(hours=2)


def root() -> Client:
    return confirmed(make_user("Root", superuser=True))


def test_hours_are_written_by_day_or_range_and_read_back_the_same() -> None:
    field = Hours()
    found = field.clean("Mon-Fri 09:00-12:00 13:00-17:00\nsat 10:00-14:00")
    assert found["tue"] == [["09:00", "12:00"], ["13:00", "17:00"]]
    assert found["sat"] == [["10:00", "14:00"]]
    assert field.clean(field.prepare_value(found)) == found
    assert not field.has_changed(found, "mon-fri 09:00-12:00 13:00-17:00\n\nsat 10:00-14:00")
    for wrong in ("monday 09:00-17:00", "mon", "mon 9-17", "fri-mon 09:00-17:00", "", "mon 17:00-09:00"):
        with pytest.raises(forms.ValidationError):
            field.clean(wrong)
    assert DaysOff().clean("2026-12-31\n2026-12-24, 2026-12-24") == [date(2026, 12, 24), date(2026, 12, 31)]


def test_an_escalation_is_a_line_for_each_level() -> None:
    one, two = make_team("Leads"), make_team("Board of Directors")
    field = EscalationField()
    found = field.clean(f"{one.name} after 90 min\n{two.name} at the deadline, 4 h more\n{two.name} at the deadline")
    assert found == [
        {"team": one.pk, "after": 5400, "extend": None},
        {"team": two.pk, "after": None, "extend": 14400},
        {"team": two.pk, "after": None, "extend": None},
    ]
    assert field.clean(field.prepare_value(found)) == found
    assert not field.has_changed(found, f"{one.name} after 1:30\n{two.name} at the deadline, 4 h more\n"
                                        f"{two.name}  At the deadline")  # fmt: skip
    for wrong in ("Nobody after 2 h", f"{one.name}", f"{one.name} after 2", f"{one.name} after 10 s"):
        with pytest.raises(forms.ValidationError):
            field.clean(wrong)


def test_the_levels_and_hours_of_the_page_for_reviewers_are_read() -> None:
    page = (ROOT / "docs" / "reviewing.md").read_text()
    [levels] = re.findall(r"```\n(.*?)```", page, re.DOTALL)
    names = {"Team leads": make_team("Team leads").name, "Directors": make_team("Directors").name}
    found = EscalationField().clean(re.sub("Team leads|Directors", lambda name: names[name[0]], levels))
    assert [(each["after"], each["extend"]) for each in found] == [(7200, None), (None, 14400)]
    [hours] = re.findall(r"hours \(`(.+?)`\)", page)
    assert Hours().clean(hours)["fri"] == [["09:00", "12:00"], ["13:00", "17:00"]]


def test_a_version_of_a_policy_keeps_its_calendar_and_levels_and_says_so() -> None:
    team, leads = make_team(), make_team("Leads")
    ann(team)
    ann(leads)
    policy = make_policy(team)
    browser = root()
    sent = {"team": team.pk, "name": "office", "zone": "Europe/Berlin", "hours": "mon-fri 09:00-17:00"}
    answer = browser.post("/admin/approvals/calendar/add/", sent | {"country": "de-by"})
    assert answer.status_code == 302, answer.content.decode()
    calendar = Calendar.objects.get(team=team)
    assert (calendar.country, calendar.hours["mon"]) == ("DE-BY", [["09:00", "17:00"]])
    assert Event.objects.filter(subject=f"calendar:{calendar.pk}", kind="calendar.changed", team_id=team.pk).exists()
    address = f"/admin/approvals/policy/{policy.pk}/change/"
    sent = {"deadline": "4 h", "calendar": calendar.pk, "escalation": f"{leads.name} after 2 h"}
    answer = browser.post(address, POLICY | sent)
    assert answer.status_code == 302, answer.content.decode()
    made = changes.confirm(PolicyChange.objects.get(team=team), by=make_user("Second", superuser=True))
    assert (made.version, made.calendar) == (2, calendar)
    assert made.escalation == [{"team": leads.pk, "after": 7200, "extend": None}]
    assert f"{leads.name} after 2 h" in browser.get(f"/admin/approvals/policy/{made.pk}/change/").content.decode()


def test_another_teams_calendar_and_an_unknown_zone_or_country_are_refused() -> None:
    team, other = make_team(), make_team("Finance")
    ann(team)
    policy, browser = make_policy(team), root()
    foreign = Calendar.objects.create(team=other, name="theirs")
    answer = browser.post(f"/admin/approvals/policy/{policy.pk}/change/", POLICY | {"calendar": foreign.pk})
    assert b"of another team" in answer.content
    sent = {"team": team.pk, "name": "office", "zone": "UTC", "hours": "mon 09:00-17:00"}
    for wrong in ({"zone": "Mars/Olympus"}, {"country": "XX"}, {"hours": "sometimes"}):
        assert browser.post("/admin/approvals/calendar/add/", sent | wrong).status_code == 200
    assert not Calendar.objects.filter(team=team).exists()
    staff, writer = (make_user("Sam", may=may, staff=True) for may in ((), ("approvals.change_policy",)))
    lists = [signed_in(each).get("/admin/approvals/calendar/").status_code for each in (staff, writer)]
    assert lists == [403, 200], "calendars are of those who write policies"


def test_nobody_alone_moves_a_deadline_or_an_escalation_by_changing_its_calendar() -> None:
    """Another team decided the next day and not the next week; a second person confirmed a deadline that the first had
    moved; an older version's open gate was moved too.
    """
    team, browser = make_team(), root()
    ann(team)
    calendar = Calendar.objects.create(team=team, name="office")
    policy = make_policy(team)
    address = f"/admin/approvals/calendar/{calendar.pk}/change/"
    form = {"name": "office", "zone": calendar.zone, "hours": "mon-sun 00:00-23:00", "country": "", "days_off": ""}

    def said() -> str:
        return str(browser.post(address, form).content.decode())

    at = {"on_expiry": "approve", "calendar": calendar, "deadline": timedelta(hours=9)}
    for moved in (at, {"calendar": calendar, "on_expiry": "expire", "escalation": [level(make_team("Others"))]}):
        Policy.objects.filter(pk=policy.pk).update(**moved)
        assert f"{policy.name} would approve or escalate at another time, " in said()
    Policy.objects.filter(pk=policy.pk).update(**at, escalation=[])
    gate = make_gate(policy=policy)
    make_policy(team, version=2)
    assert "Make a new calendar and name it" in said()
    closing.withdraw(gate, by=SYSTEM, reason="Not needed.")
    changes.save(Policy(team=team, name=policy.name, **at), groups=[], people=[], by=make_user("Writer"))
    assert "Make a new calendar and name it" in said()
    calendar.refresh_from_db()
    assert "sun" not in calendar.hours
    changes.refuse(PolicyChange.objects.get(team=team), by=make_user("Second", superuser=True))
    assert browser.post(address, form).status_code == 302
