"""The working time of a policy's calendar, with public holidays of its country by the holidays library."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import holidays

from approvals.models import Calendar, Policy

from .working_time import WorkingTime, read_hours


def working_time(calendar: Calendar) -> WorkingTime:
    """Return the calendar's working time. Raises ValueError, KeyError or NotImplementedError for what it cannot be."""
    off = frozenset(calendar.days_off)

    def is_off(day: date) -> bool:
        return day in off or (bool(calendar.country) and day in public_holidays(calendar.country, day.year))

    return WorkingTime(ZoneInfo(calendar.zone), read_hours(calendar.hours), is_off)


@lru_cache(1024)
def public_holidays(country: str, year: int) -> frozenset[date]:
    """Return the public holidays of "DE" or "DE-BY" in a year. Raises NotImplementedError for an unknown country.

    The library's own list fills in a year as it is first asked for one, and threads would see that half done.
    """
    code, _, part = country.partition("-")
    return frozenset(holidays.country_holidays(code, subdiv=part or None, years=year))


def after(policy: Policy, start: datetime, span: timedelta) -> datetime:
    """Return the moment at which so much time has passed since `start`, as the policy counts it."""
    if policy.calendar is None:
        return start + span
    return working_time(policy.calendar).after(start, span)
