"""The words of the page of notification settings."""

from __future__ import annotations

from typing import Any

from django import template
from django.template.context import RequestContext
from django.template.exceptions import TemplateDoesNotExist
from django.template.loader import get_template
from django.utils.dates import WEEKDAYS, WEEKDAYS_ABBR
from django.utils.safestring import SafeString

from approvals.notifications.channel import NoticeChannel
from approvals.notifications.message import NoticeKind

register = template.Library()

KINDS: dict[NoticeKind, dict[str, str]] = {
    NoticeKind.ASKED: {
        "title": "Decision needed",
        "when": "when a gate opens that you may decide, or is handed over to you",
    },
    NoticeKind.REMINDER: {"title": "Reminder", "when": "when its deadline is near and you have not decided"},
    NoticeKind.DECIDED: {"title": "How it ended", "when": "when a gate that you were asked about ends"},
    NoticeKind.MENTION: {"title": "Mention", "when": "when somebody writes your name at a gate"},
    NoticeKind.HANDOVER: {
        "title": "Handover",
        "when": "when somebody takes over a gate that you claimed, or names you to decide while they are away",
    },
    NoticeKind.MY_RUN: {
        "title": "Your runs",
        "when": "when a gate of a run that you started ends, or the run fails",
    },
}
LEVELS = [
    ("low", "Any risk"),
    ("medium", "Medium and up"),
    ("high", "High and up"),
    ("critical", "Critical only"),
    ("never", "Never"),
]
LEADS = [
    ("policy", "When the policy says"),
    ("15m", "15 minutes before"),
    ("1h", "1 hour before"),
    ("4h", "4 hours before"),
    ("1d", "1 day before"),
    ("2d", "2 days before"),
    ("never", "Never"),
]


@register.simple_tag
def notice_kind(kind: str) -> dict[str, str]:
    """Return the title of a kind of message, and when it is sent."""
    return KINDS[NoticeKind(kind)]


@register.simple_tag
def levels() -> list[tuple[str, Any]]:
    """Return the choices of a kind and channel."""
    return LEVELS


@register.simple_tag
def leads() -> list[tuple[str, Any]]:
    """Return the choices of a reminder's time."""
    return LEADS


@register.simple_tag
def weekdays() -> list[tuple[int, Any, Any]]:
    """Return the days of the week, each with its short and its long name."""
    return [(number, WEEKDAYS_ABBR[number], WEEKDAYS[number]) for number in range(7)]


@register.simple_tag(takes_context=True)
def channel_form(context: RequestContext, channel: NoticeChannel) -> SafeString:
    """Render how addresses of a channel are added and removed: notifications/channels/<name>.html."""
    try:
        found = get_template(f"notifications/channels/{channel.name}.html")
    except TemplateDoesNotExist:
        return SafeString("")
    return found.template.render(context)  # type: ignore[attr-defined, no-any-return]
