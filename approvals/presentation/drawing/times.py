"""Writes times in words, in the reader's zone where it is known (approvals.time_zones). A script keeps them current."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.html import escape
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext


def lasting(span: timedelta) -> str:
    """Write a duration: `9 s`, `25 min`, `1 h 8 min`, `3 days`."""
    seconds = max(int(span.total_seconds()), 0)
    if seconds < 60:
        return _("%(seconds)s s") % {"seconds": seconds}
    minutes = seconds // 60
    if minutes < 60:
        return _("%(minutes)s min") % {"minutes": minutes}
    if minutes < 48 * 60:
        hours, rest = divmod(minutes, 60)
        words = _("%(hours)s h %(minutes)s min") if rest and hours < 10 else _("%(hours)s h")
        return words % {"hours": hours, "minutes": rest}
    days = minutes // (24 * 60)
    return ngettext("%(days)s day", "%(days)s days", days) % {"days": days}


def remaining(span: timedelta) -> str:
    """Write what is left, to the second: `24 s`, `1 min 5 s`, `2 h 3 min`."""
    minutes, seconds = divmod(-(-span // timedelta(seconds=1)), 60)
    if minutes >= 60:
        return lasting(span)
    if not minutes:
        return _("%(seconds)s s") % {"seconds": seconds}
    return _("%(minutes)s min %(seconds)s s") % {"minutes": minutes, "seconds": seconds}


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
        return _("in %(time)s") % {"time": lasting(moment - now)} if moment > now else _("overdue")
    if style == "countdown":
        return _("in %(time)s") % {"time": remaining(moment - now)} if moment > now else _("now")
    here, today = timezone.localtime(moment), timezone.localtime(now).date()
    zone = "" if timezone.get_current_timezone() != timezone.get_default_timezone() else " UTC"
    if style == "moment" or here.date() != today:
        return f"{here.day} {here:%b, %H:%M}{zone}"
    return f"{here:%H:%M:%S}{zone}" if style == "second" else f"{here:%H:%M}{zone}"
