"""Writes moments for messages, in the zone of the person who reads them."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo, available_timezones

from django.utils import formats


def moment(at: datetime, zone: str) -> str:
    """Return a moment with its day and the zone's name, as "27 Nov 2026, 14:00 (Europe/Berlin)"."""
    name = zone if zone in available_timezones() else "UTC"
    there = at.astimezone(ZoneInfo(name))
    return f"{formats.date_format(there, 'j M Y, H:i')} ({name})"
