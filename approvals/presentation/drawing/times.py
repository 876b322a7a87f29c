"""Writes times in words, in the reader's zone where it is known (approvals.time_zones). A script keeps them current."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.html import escape
from django.utils.safestring import SafeString

from approvals.english import count_of


def lasting(span: timedelta) -> str:
    """Write a duration: `9 s`, `25 min`, `1 h 8 min`, `3 days`."""
    seconds = max(int(span.total_seconds()), 0)
    if seconds < 60:
        return f"{seconds} s"
    minutes = seconds // 60
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        hours, rest = divmod(minutes, 60)
        return f"{hours} h {rest} min" if rest and hours < 10 else f"{hours} h"
    days = minutes // (24 * 60)
    return count_of(days, "day")


def remaining(span: timedelta) -> str:
    """Write what is left, to the second: `24 s`, `1 min 5 s`, `2 h 3 min`."""
    minutes, seconds = divmod(-(-span // timedelta(seconds=1)), 60)
    if minutes >= 60:
        return lasting(span)
    if not minutes:
        return f"{seconds} s"
    return f"{minutes} min {seconds} s"


def element(moment: datetime | None, style: str = "clock") -> SafeString:
    """Render a <time> that the browser shows in the reader's zone. `style`: see `say`."""
    if moment is None:
        return SafeString("")
    told = escape(say(moment, style))
    return SafeString(f'<time datetime="{moment.isoformat()}" data-as="{style}">{told}</time>')


def say(moment: datetime, style: str, *, now: datetime | None = None) -> str:
    """Write `moment` in one of these styles.

    clock (14:02), second (14:02:41), moment (21 Nov, 14:02), ago (5 min), until (in 5 min), countdown (in 24 s, now).
    """
    now = now or timezone.now()
    if style == "ago":
        return lasting(now - moment)
    if style == "until":
        return f"in {lasting(moment - now)}" if moment > now else "overdue"
    if style == "countdown":
        return f"in {remaining(moment - now)}" if moment > now else "now"
    here, today = timezone.localtime(moment), timezone.localtime(now).date()
    zone = "" if timezone.get_current_timezone() != timezone.get_default_timezone() else " UTC"
    if style == "moment" or here.date() != today:
        return f"{here.day} {here:%b, %H:%M}{zone}"
    return f"{here:%H:%M:%S}{zone}" if style == "second" else f"{here:%H:%M}{zone}"


def moment(at: datetime | None) -> str:
    """Write `at 16:18`, or `on 21 Nov, 16:18` where that was another day, in the reader's zone."""
    if at is None:
        return ""
    today = timezone.localtime(at).date() == timezone.localtime().date()
    if today:
        return f"at {say(at, 'clock')}"
    return f"on {say(at, 'moment')}"
