"""Quiet hours, digests and reminders: pure arithmetic on a person's zone."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from approvals.models import NotificationPreference, Policy
from approvals.notifications import choices
from approvals.notifications.message import NoticeKind, Urgency

UTC = dt.UTC
OPENED = dt.datetime(2026, 11, 27, 10, 0, tzinfo=UTC)


def settings(**fields: Any) -> NotificationPreference:
    zone = fields.pop("zone", "Europe/Berlin")
    found = NotificationPreference(**{"quiet_from": dt.time(19), "quiet_until": dt.time(8)} | fields)
    found.zone = zone
    return found


def at(text: str) -> dt.datetime:
    return dt.datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("now", "until"),
    [
        ("2026-11-27T17:59", None),  # 18:59 in Berlin
        ("2026-11-27T18:00", "2026-11-28T07:00"),  # 19:00 there, until 8:00
        ("2026-11-28T03:00", "2026-11-28T07:00"),
        ("2026-11-28T06:59", "2026-11-28T07:00"),
        ("2026-11-28T07:00", None),
        ("2026-10-24T20:00", "2026-10-25T07:00"),  # the clock goes back in that night
        ("2026-03-28T20:00", "2026-03-29T06:00"),  # and forward in this one
    ],
)
def test_quiet_hours_over_midnight(now: str, until: str | None) -> None:
    found = choices.quiet_until(settings(), at(now), critical=False)
    assert found == (at(until) if until else None)


def test_quiet_hours_that_end_in_an_hour_that_comes_twice() -> None:
    """Their first end had passed, so the second half hour put messages off by a whole day."""
    early = settings(quiet_until=dt.time(2, 30))
    assert choices.quiet_until(early, at("2026-10-25T00:10"), critical=False) == at("2026-10-25T00:30")  # 2:10
    assert choices.quiet_until(early, at("2026-10-25T01:10"), critical=False) == at("2026-10-25T01:30")  # 2:10 again


def test_quiet_hours_within_a_day() -> None:
    lunch = settings(quiet_from=dt.time(12), quiet_until=dt.time(13), zone="UTC")
    assert choices.quiet_until(lunch, at("2026-11-27T12:30"), critical=False) == at("2026-11-27T13:00")
    assert choices.quiet_until(lunch, at("2026-11-27T13:00"), critical=False) is None


def test_quiet_days_and_hours_that_meet_are_one() -> None:
    weekend = settings(quiet_days=[5, 6])
    assert choices.quiet_until(weekend, at("2026-11-27T20:00"), critical=False) == at("2026-11-30T07:00")  # a Friday
    only_days = settings(quiet_from=None, quiet_until=None, quiet_days=[5, 6])
    assert choices.quiet_until(only_days, at("2026-11-28T10:00"), critical=False) == at("2026-11-29T23:00")


def test_critical_risk_passes_where_the_person_lets_it() -> None:
    night = at("2026-11-27T23:00")
    assert choices.quiet_until(settings(), night, critical=True) is None
    assert choices.quiet_until(settings(critical_passes=False), night, critical=True) is not None
    assert choices.quiet_until(None, night, critical=False) is None


def test_an_unknown_zone_counts_as_utc() -> None:
    assert str(choices.zone_of(settings(zone="Mars/Olympus"))) == "UTC"


@pytest.mark.parametrize(
    ("now", "due"),
    [
        ("2026-11-27T07:59", "2026-11-27T08:00"),
        ("2026-11-27T08:00", "2026-11-27T13:30"),
        ("2026-11-27T13:30", "2026-11-30T08:00"),  # after the weekend
    ],
)
def test_the_next_digest(now: str, due: str) -> None:
    twice = settings(digest_at=[dt.time(9), dt.time(14, 30)], digest_days=[0, 1, 2, 3, 4])
    assert choices.next_digest(twice, at(now)) == at(due)


def test_no_digest_where_none_is_chosen() -> None:
    assert choices.next_digest(settings(), OPENED) is None
    assert choices.next_digest(settings(digest_at=[dt.time(9)], digest_days=[]), OPENED) is None


HOUR = dt.timedelta(hours=1)


@pytest.mark.parametrize(
    ("person", "policy", "lead"),
    [
        (None, {}, HOUR),  # a quarter of four hours
        (None, {"remind_share": 50}, 2 * HOUR),
        (None, {"remind_share": 0}, None),
        (None, {"remind_before": HOUR / 2}, HOUR / 2),
        (None, {"remind_before": dt.timedelta()}, None),
        (HOUR / 4, {"remind_before": HOUR / 2}, HOUR / 4),
        (dt.timedelta(), {}, None),
        (24 * HOUR, {}, None),  # it would come before the gate
        (4 * HOUR, {}, None),  # or with it
    ],
    ids=str,
)
def test_when_a_person_is_reminded(
    person: dt.timedelta | None, policy: dict[str, Any], lead: dt.timedelta | None
) -> None:
    due = OPENED + 4 * HOUR
    found = choices.reminder(settings(remind_before=person), Policy(**policy), opened=OPENED, deadline=due)
    assert found == (due - lead if lead else None)


def test_no_reminder_without_a_deadline() -> None:
    assert choices.reminder(None, Policy(), opened=OPENED, deadline=None) is None
    assert choices.reminder(None, Policy(), opened=OPENED, deadline=OPENED) is None


def test_what_a_person_wants() -> None:
    chosen = settings(choices={"asked": {"email": "high", "push": "never"}, "decided": {"email": "?"}})
    told = [choices.wants(chosen, NoticeKind.ASKED, "email", risk) for risk in ("low", "medium", "high", "critical")]
    assert told == [False, False, True, True]
    assert not choices.wants(chosen, NoticeKind.ASKED, "push", "critical")
    assert choices.wants(chosen, NoticeKind.REMINDER, "push", "low")
    assert not choices.wants(chosen, NoticeKind.DECIDED, "email", "critical")
    assert choices.wants(None, NoticeKind.ASKED, "email", "low")


def test_how_urgent_a_message_is() -> None:
    near, far = OPENED + HOUR, OPENED + 2 * HOUR
    assert choices.urgency("low", near, kind=NoticeKind.ASKED, now=OPENED) == Urgency.HIGH
    assert choices.urgency("low", far, kind=NoticeKind.ASKED, now=OPENED) == Urgency.NORMAL
    assert choices.urgency("critical", None, kind=NoticeKind.ASKED, now=OPENED) == Urgency.HIGH
    assert choices.urgency("critical", near, kind=NoticeKind.DECIDED, now=OPENED) == Urgency.LOW
