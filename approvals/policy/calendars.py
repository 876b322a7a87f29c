"""The working time of a policy's calendar, with public holidays of its country by the holidays library."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import holidays

from approvals.models import Calendar, Policy

from .working_time import WorkingTime, read_hours


def working_time(calendar: Calendar) -> WorkingTime:
    """Return the calendar's working time. Raises ValueError, KeyError or NotImplementedError for what it cannot be."""
    off = frozenset(calendar.days_off)
    public = public_holidays(calendar.country) if calendar.country else {}

    def is_off(day: date) -> bool:
        return day in off or day in public

    return WorkingTime(ZoneInfo(calendar.zone), read_hours(calendar.hours), is_off)


@lru_cache(64)
def public_holidays(country: str) -> Any:
    """Return the public holidays of "DE" or "DE-BY", of any year. Raises NotImplementedError for an unknown one."""
    code, _, part = country.partition("-")
    return holidays.country_holidays(code, subdiv=part or None)


def after(policy: Policy, start: datetime, span: timedelta) -> datetime:
    """Return the moment at which so much time has passed since `start`, as the policy counts it."""
    if policy.calendar is None:
        return start + span
    return working_time(policy.calendar).after(start, span)
