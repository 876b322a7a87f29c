"""Calendars and escalations as people write them in the administration."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any

import pytest
from django import forms
from django.contrib.auth.models import User
from django.test import Client

from approvals.admin.calendars import DaysOff, Hours
from approvals.admin.policy_form import EscalationField
from approvals.gates import closing
from approvals.models import Calendar, Policy, PolicyChange
from approvals.policy_changes import changes
from checkpoints.actors import SYSTEM
from checkpoints.models import Event
from tests.factories import ann, make_gate, make_policy, make_team, make_user
from tests.harness.session import ROOT
from tests.harness.signed_in_clients import confirmed, signed_in

OFFICE = "mon-fri 09:00-17:00"


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


def posted(policy: Policy, **more: Any) -> dict[str, Any]:
    return {
        "quorum": 1, "separation": "on", "reason_required": "on", "tokens_decide": "on", "deadline": "4 h",
        "on_expiry": "expire", "hourly": 120, "pause": "10 min", "denials": 1, "bulk_risk": "low", "auto_sample": 5,
        "leaves": "title", "remind_share": 25, "step_up_method": "any", **more,
    }  # fmt: skip


def test_a_version_of_a_policy_keeps_its_calendar_and_levels_and_says_so() -> None:
    team, leads = make_team(), make_team("Leads")
    ann(team)
    ann(leads)
    policy = make_policy(team)
    browser = root()
    answer = browser.post(
        "/admin/approvals/calendar/add/",
        {
            "team": team.pk,
            "name": "office",
            "zone": "Europe/Berlin",
            "hours": "mon-fri 09:00-17:00",
            "country": "de-by",
        },
    )
    assert answer.status_code == 302, answer.content.decode()
    calendar = Calendar.objects.get(team=team)
    assert (calendar.country, calendar.hours["mon"]) == ("DE-BY", [["09:00", "17:00"]])
    assert Event.objects.filter(subject=f"calendar:{calendar.pk}", kind="calendar.changed", team_id=team.pk).exists()
    address = f"/admin/approvals/policy/{policy.pk}/change/"
    answer = browser.post(address, posted(policy, calendar=calendar.pk, escalation=f"{leads.name} after 2 h"))
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
    answer = browser.post(f"/admin/approvals/policy/{policy.pk}/change/", posted(policy, calendar=foreign.pk))
    assert b"of another team" in answer.content
    for wrong in ({"zone": "Mars/Olympus"}, {"country": "XX"}, {"hours": "sometimes"}):
        sent = {"team": team.pk, "name": "office", "zone": "UTC", "hours": "mon 09:00-17:00", **wrong}
        assert browser.post("/admin/approvals/calendar/add/", sent).status_code == 200
    assert not Calendar.objects.filter(team=team).exists()


def test_calendars_are_of_those_who_write_policies() -> None:
    staff = make_user("Staff")
    User.objects.filter(pk=staff.pk).update(is_staff=True)
    assert signed_in(staff).get("/admin/approvals/calendar/").status_code == 403
    writer = make_user("Writer", may=("approvals.change_policy",))
    User.objects.filter(pk=writer.pk).update(is_staff=True)
    assert signed_in(writer).get("/admin/approvals/calendar/").status_code == 200


@pytest.mark.parametrize("by", ["approving", "escalating"])
def test_nobody_alone_moves_a_deadline_or_an_escalation_by_changing_its_calendar(by: str) -> None:
    """Escalations were moved: another team decided the next day and not the next week."""
    team, browser = make_team(), root()
    ann(team)
    calendar = Calendar.objects.create(team=team, name="office")
    policy = make_policy(team)
    level = {"team": make_team("Others").pk, "after": 3600, "extend": None}
    moved: dict[str, Any] = {"on_expiry": "approve"} if by == "approving" else {"escalation": [level]}
    Policy.objects.filter(pk=policy.pk).update(calendar=calendar, **moved)
    address = f"/admin/approvals/calendar/{calendar.pk}/change/"
    said = {"name": "office", "zone": calendar.zone, "hours": "mon-sun 00:00-23:00", "country": "", "days_off": ""}
    answer = browser.post(address, said)
    assert f"{policy.name} would approve or escalate at another time, " in answer.content.decode()
    calendar.refresh_from_db()
    assert "sun" not in calendar.hours
    Policy.objects.filter(pk=policy.pk).update(on_expiry="expire", escalation=[])
    assert browser.post(address, said).status_code == 302


@pytest.mark.parametrize("use", ["a waiting change", "an open gate"])
def test_nor_where_a_change_waits_or_a_gate_is_open_that_counts_by_it(use: str) -> None:
    """A second person confirmed a deadline that the first had moved; an older version's open gate was moved too."""
    team, browser = make_team(), root()
    ann(team)
    calendar = Calendar.objects.create(team=team, name="office")
    policy = make_policy(team)
    if use == "a waiting change":
        draft = Policy(team=team, name=policy.name, on_expiry="approve", calendar=calendar, deadline=timedelta(hours=9))
        changes.save(draft, groups=[], people=[], by=make_user("Writer"))
    else:
        Policy.objects.filter(pk=policy.pk).update(on_expiry="approve", calendar=calendar, deadline=timedelta(hours=9))
        gate = make_gate(policy=policy)
        make_policy(team, version=2)
    address = f"/admin/approvals/calendar/{calendar.pk}/change/"
    said = {"name": "office", "zone": calendar.zone, "hours": "mon-sun 00:00-23:00", "country": "", "days_off": ""}
    assert "Make a new calendar and name it" in browser.post(address, said).content.decode()
    if use == "a waiting change":
        changes.refuse(PolicyChange.objects.get(team=team), by=make_user("Second", superuser=True))
    else:
        closing.withdraw(gate, by=SYSTEM, reason="Not needed.")
    assert browser.post(address, said).status_code == 302
