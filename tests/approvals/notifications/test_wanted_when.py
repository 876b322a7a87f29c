"""What people choose: quiet hours, digests and reminders by the arithmetic of their zone, and the page for it."""

from __future__ import annotations

import datetime as dt
from itertools import pairwise
from typing import Any

import pytest

from approvals.cards.card import RISKS
from approvals.models import Message, NotificationPreference, Policy
from approvals.notifications import delivering, wanted_when
from approvals.notifications.building import NoticeKind, Urgency
from approvals.notifications.email import Email
from tests.factories import ann, make_gate, make_team
from tests.harness.signed_in_clients import signed_in

from .mail_server import MailServer
from .told import fanned

PAGE = "/account/notifications/"
HOUR = dt.timedelta(hours=1)


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC)


OPENED = at("2026-11-27T10:00")


def settings(**fields: Any) -> NotificationPreference:
    zone = fields.pop("zone", "Europe/Berlin")
    found = NotificationPreference(**{"quiet_from": dt.time(19), "quiet_until": dt.time(8)} | fields)
    found.zone = zone
    return found


@pytest.mark.parametrize(
    ("now", "until"),
    [
        ("2026-11-27T17:59", None),  # 18:59 in Berlin
        ("2026-11-27T18:00", "2026-11-28T07:00"),  # 19:00 there, until 8:00
        ("2026-11-28T07:00", None),
        ("2026-10-24T20:00", "2026-10-25T07:00"),  # the clock goes back in that night
        ("2026-03-28T20:00", "2026-03-29T06:00"),  # and forward in this one
    ],
)
def test_quiet_hours_over_midnight(now: str, until: str | None) -> None:
    found = wanted_when.quiet_until(settings(), at(now), critical=False)
    assert found == (at(until) if until else None)


def test_quiet_hours_end_by_the_persons_clock() -> None:
    """Their first end had passed, so the second half hour put messages off by a whole day."""
    early = settings(quiet_until=dt.time(2, 30))
    assert wanted_when.quiet_until(early, at("2026-10-25T00:10"), critical=False) == at("2026-10-25T00:30")  # 2:10
    assert wanted_when.quiet_until(early, at("2026-10-25T01:10"), critical=False) == at("2026-10-25T01:30")  # again
    lunch = settings(quiet_from=dt.time(12), quiet_until=dt.time(13), zone="UTC")
    assert wanted_when.quiet_until(lunch, at("2026-11-27T12:30"), critical=False) == at("2026-11-27T13:00")
    assert wanted_when.quiet_until(lunch, at("2026-11-27T13:00"), critical=False) is None
    weekend = settings(quiet_days=[5, 6])
    assert wanted_when.quiet_until(weekend, at("2026-11-27T20:00"), critical=False) == at("2026-11-30T07:00")  # Friday
    only_days = settings(quiet_from=None, quiet_until=None, quiet_days=[5, 6])
    assert wanted_when.quiet_until(only_days, at("2026-11-28T10:00"), critical=False) == at("2026-11-29T23:00")
    night = at("2026-11-27T23:00")
    assert wanted_when.quiet_until(settings(), night, critical=True) is None
    assert wanted_when.quiet_until(settings(critical_passes=False), night, critical=True) is not None
    assert wanted_when.quiet_until(None, night, critical=False) is None
    assert str(wanted_when.zone_of(settings(zone="Mars/Olympus"))) == "UTC"


def test_the_next_digest() -> None:
    twice = settings(digest_at=[dt.time(9), dt.time(14, 30)], digest_days=[0, 1, 2, 3, 4])
    dues = ["2026-11-27T07:59", "2026-11-27T08:00", "2026-11-27T13:30", "2026-11-30T08:00"]  # after the weekend
    for now, due in pairwise(dues):
        assert wanted_when.next_digest(twice, at(now)) == at(due)
    for chosen in (settings(), settings(digest_at=[dt.time(9)], digest_days=[])):
        assert wanted_when.next_digest(chosen, OPENED) is None


@pytest.mark.parametrize(
    ("person", "policy", "lead"),
    [
        (None, {}, HOUR),  # a quarter of four hours
        (None, {"remind_share": 50}, 2 * HOUR),
        (None, {"remind_share": 0}, None),
        (None, {"remind_before": HOUR / 2}, HOUR / 2),
        (HOUR / 4, {"remind_before": HOUR / 2}, HOUR / 4),
        (dt.timedelta(), {}, None),
        (4 * HOUR, {}, None),  # or with it
    ],
)
def test_when_a_person_is_reminded(
    person: dt.timedelta | None, policy: dict[str, Any], lead: dt.timedelta | None
) -> None:
    due = OPENED + 4 * HOUR
    found = wanted_when.reminder(settings(remind_before=person), Policy(**policy), opened=OPENED, deadline=due)
    assert found == (due - lead if lead else None)
    assert wanted_when.reminder(settings(remind_before=person), Policy(**policy), opened=OPENED, deadline=None) is None


def test_what_a_person_wants_and_how_urgent_a_message_is() -> None:
    chosen = settings(choices={"asked": {"email": "high", "push": "never"}, "decided": {"email": "?"}})
    wanted = [wanted_when.wants(chosen, NoticeKind.ASKED, "email", risk) for risk in RISKS]
    assert wanted == [False, False, True, True]
    assert not wanted_when.wants(chosen, NoticeKind.ASKED, "push", "critical")
    assert wanted_when.wants(chosen, NoticeKind.REMINDER, "push", "low")
    assert not wanted_when.wants(chosen, NoticeKind.DECIDED, "email", "critical")
    assert wanted_when.wants(None, NoticeKind.ASKED, "email", "low")
    near, far = OPENED + HOUR, OPENED + 2 * HOUR
    assert wanted_when.urgency("low", near, kind=NoticeKind.ASKED, now=OPENED) == Urgency.HIGH
    assert wanted_when.urgency("low", far, kind=NoticeKind.ASKED, now=OPENED) == Urgency.NORMAL
    assert wanted_when.urgency("critical", None, kind=NoticeKind.ASKED, now=OPENED) == Urgency.HIGH
    assert wanted_when.urgency("critical", near, kind=NoticeKind.DECIDED, now=OPENED) == Urgency.LOW


FORM = {
    "asked-email": "high", "reminder-email": "low", "decided-email": "medium", "mention-email": "low",
    "my_run-email": "never", "zone": "Europe/Berlin", "remind": "1h", "quiet": "on", "quiet_from": "19:00",
    "quiet_until": "08:00", "quiet_day": ["5", "6"], "critical_passes": "on", "digest_1": "09:00", "digest_2": "",
    "digest_day": ["0", "1", "2", "3", "4"],
}  # fmt: skip


def test_it_shows_the_defaults_and_stores_what_is_chosen() -> None:
    reader = ann(make_team())
    client = signed_in(reader)
    page = client.get(PAGE).content.decode()
    assert reader.email in page
    assert 'name="asked-email"' in page
    assert client.post(PAGE + "settings/", FORM)["Location"] == PAGE + "?saved"
    kept = NotificationPreference.objects.get(user=reader)
    assert kept.choices["asked"] == {"email": "high"}
    assert (kept.zone, kept.remind_before, kept.quiet_days) == ("Europe/Berlin", dt.timedelta(hours=1), [5, 6])
    assert (kept.quiet_from, kept.digest_at) == (dt.time(19), [dt.time(9)])
    assert kept.digest_next is not None
    shown = client.get(PAGE).content.decode()
    assert '<option value="high" selected>' in shown
    assert client.cookies["hp-own-zone"].value == "Europe/Berlin"
    assert 'value="Europe/Berlin"' in shown


def test_the_zone_of_the_profile_is_that_of_the_digest() -> None:
    """It was stored beside the profile's, so that pages and messages told two times."""
    reader = ann(make_team())
    client = signed_in(reader)
    client.post(PAGE + "settings/", FORM)
    client.post(
        "/account/changes/", {"first_name": reader.first_name, "last_name": reader.last_name, "zone": "Asia/Tokyo"}
    )
    kept = NotificationPreference.objects.get(user=reader)
    assert (kept.zone, kept.digest_next.hour if kept.digest_next else None) == ("Asia/Tokyo", 0)
    assert 'value="Asia/Tokyo"' in client.get(PAGE).content.decode()
    assert [each.zone for each in Email().addresses(people=[reader.pk])] == ["Asia/Tokyo"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"zone": "Mars/Olympus"},
        {"quiet_from": "late"},
        {"quiet_until": "19:00"},
        {"quiet_day": ["0", "1", "2", "3", "4", "5", "6"]},
        {"digest_day": []},
    ],
    ids=str,
)
def test_it_stores_nothing_of_what_cannot_be(wrong: dict[str, Any]) -> None:
    reader = ann(make_team())
    answer = signed_in(reader).post(PAGE + "settings/", {**FORM, **wrong})
    assert answer.status_code == 422
    assert "Nothing was changed." in answer.content.decode()
    assert not NotificationPreference.objects.filter(user=reader).exists()


def test_a_test_message_is_sent_and_is_in_the_log(mails: MailServer) -> None:
    reader = ann(make_team())
    client = signed_in(reader)
    for channel in ("pigeon", "e\0mail"):  # a NUL was an error of the server
        assert client.post(PAGE + "tests/", {"channel": channel}).status_code == 422
    assert client.post(PAGE + "tests/", {"channel": "email"}).status_code == 303
    delivering.run_slice()
    assert [mail["Subject"] for mail in mails.mails] == ["A test message"]
    assert "by e-mail: sent" in " ".join(client.get(PAGE).content.decode().split())
    told = [client.post(PAGE + "tests/", {"channel": "email"}).status_code for _ in range(5)]
    assert told == [303] * 4 + [422]
    assert Message.objects.filter(user=reader, kind="test").count() == 5


def test_the_log_names_no_gate_that_its_reader_may_not_see_any_more() -> None:
    """Also one whose message was held back, because they had left the team by then, was there with its title."""
    team = make_team()
    reader = ann(team)
    gate = make_gate(team=team)
    fanned()
    client = signed_in(reader)
    assert gate.title in client.get(PAGE).content.decode()
    reader.groups.clear()
    page = client.get(PAGE).content.decode()
    assert gate.title not in page
    assert f"/gates/{gate.pk}/" not in page
    assert "Decision needed" in page


def test_the_gates_page_says_who_was_told_and_opened_it(mails: MailServer) -> None:
    team = make_team()
    reviewer = ann(team)
    gate = make_gate(team=team)
    delivering.run_slice()
    client = signed_in(reviewer)
    said = " ".join(client.get(f"/gates/{gate.pk}/").content.decode().split())
    assert "Who was told" in said
    assert "Ann Okafor" in said
    again = " ".join(client.get(f"/gates/{gate.pk}/").content.decode().split())
    assert ", opened" in again
