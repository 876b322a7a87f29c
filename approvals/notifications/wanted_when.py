"""Decides what a person is told, by which channel, and when, from their settings. Pure: the time is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo, available_timezones

from approvals.cards.card import RISKS
from approvals.models import NotificationPreference, Policy

from .building import NoticeKind, Urgency

NEVER = "never"
LEVELS = (NEVER, *RISKS)  # what a person chooses of: never, or from which risk on
DEFAULTS = {  # of the kinds that a person chooses for
    NoticeKind.ASKED: "low",
    NoticeKind.REMINDER: "low",
    NoticeKind.DECIDED: NEVER,
    NoticeKind.MENTION: "low",
    NoticeKind.HANDOVER: "low",
    NoticeKind.MY_RUN: "low",
}
CHOSEN = tuple(DEFAULTS)
SOON = timedelta(hours=1)
CROWDED = 0.9  # of the time to the deadline: a reminder that would come before a tenth of it has passed is none
DAYS = 14  # days that are searched for the end of quiet hours, or for the next digest


def least_risk(settings: NotificationPreference | None, kind: str, channel: str) -> str:
    """Return the least risk from which on the person is told of this kind by this channel, or NEVER."""
    chosen: Mapping[str, Mapping[str, str]] = settings.choices if settings else {}
    level = chosen.get(kind, {}).get(channel, DEFAULTS.get(NoticeKind(kind), "low"))
    return level if level in LEVELS else NEVER


def wants(settings: NotificationPreference | None, kind: str, channel: str, risk: str) -> bool:
    """Tell whether the person wants a message of this kind by this channel, about a gate of this risk."""
    least = least_risk(settings, kind, channel)
    return least != NEVER and RISKS.index(risk) >= RISKS.index(least)


def urgency(risk: str, deadline: datetime | None, *, kind: str, now: datetime) -> Urgency:
    """Return how urgent a message is: critical risk and a deadline within the hour cannot wait."""
    if kind in (NoticeKind.DECIDED, NoticeKind.DIGEST, NoticeKind.MY_RUN):
        return Urgency.LOW
    near = deadline is not None and deadline - now <= SOON
    return Urgency.HIGH if risk == "critical" or near else Urgency.NORMAL


def zone_of(settings: NotificationPreference | None) -> ZoneInfo:
    """Return the person's zone; UTC where they chose none, or one that is not known any more."""
    name = settings.zone if settings else None
    return ZoneInfo(name if name and name in available_timezones() else "UTC")


def quiet_until(settings: NotificationPreference | None, now: datetime, *, critical: bool) -> datetime | None:
    """Return the end of the person's quiet time, where `now` is in it; None where they may be told.

    Quiet days and quiet hours that meet are one quiet time. Where a change of the clock repeats an hour, both count
    (PEP 495).
    """
    if settings is None or (critical and settings.critical_passes):
        return None
    zone = zone_of(settings)
    if not _quiet(settings, now.astimezone(zone)):
        return None
    first = now.astimezone(zone).date()
    edges = [_moment(first + timedelta(days=n), at, zone) for n in range(DAYS) for at in _edges(settings)]
    later = sorted(edge for edge in edges if edge > now)
    return next((edge for edge in later if not _quiet(settings, edge.astimezone(zone))), None)


def _edges(settings: NotificationPreference) -> Sequence[time]:
    """Return the times of day at which quiet time may end, each of them twice: some nights have an hour twice."""
    ends = [time(), *([settings.quiet_until] if settings.quiet_until else [])]
    return [each.replace(fold=fold) for each in ends for fold in (0, 1)]


def _quiet(settings: NotificationPreference, at: datetime) -> bool:
    if at.weekday() in settings.quiet_days:
        return True
    start, end = settings.quiet_from, settings.quiet_until
    if start is None or end is None or start == end:
        return False
    clock = at.time()
    return start <= clock < end if start < end else clock >= start or clock < end


def next_digest(settings: NotificationPreference, now: datetime) -> datetime | None:
    """Return the next time at which the person's digest is due; None where they chose none."""
    zone = zone_of(settings)
    first = now.astimezone(zone).date()
    days = [first + timedelta(days=n) for n in range(DAYS)]
    due = [_moment(day, at, zone) for day in days if day.weekday() in settings.digest_days for at in settings.digest_at]
    return min((each for each in due if each > now), default=None)


def _moment(day: date, at: time, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, at, zone).astimezone(ZoneInfo("UTC"))


def reminder(
    settings: NotificationPreference | None, policy: Policy, *, opened: datetime, deadline: datetime | None
) -> datetime | None:
    """Return when the person is reminded of a gate; None where they are not.

    Their own choice goes before the policy's, and its fixed time before its share. A reminder that would come almost
    with the first message is left out.
    """
    if deadline is None or deadline <= opened:
        return None
    whole = deadline - opened
    before = settings.remind_before if settings else None
    if before is None:
        before = policy.remind_before if policy.remind_before is not None else whole * (policy.remind_share / 100)
    return deadline - before if timedelta() < before <= whole * CROWDED else None
