"""Template tags of the notification settings: their words, the browsers, Slack, and the channels of teams."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django import template
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Max
from django.template import Context
from django.template.context import RequestContext
from django.template.exceptions import TemplateDoesNotExist
from django.template.loader import select_template
from django.utils.dates import WEEKDAYS, WEEKDAYS_ABBR
from django.utils.safestring import SafeString

from approvals.accounts import pushed
from approvals.channels import browsers, slack, vapid
from approvals.models import ChannelAddress, Message
from approvals.notifications import log
from approvals.notifications.building import NoticeKind
from approvals.notifications.channel import NoticeChannel
from checkpoints.access.permissions import own_teams

register = template.Library()

KINDS: dict[NoticeKind, dict[str, str]] = {
    NoticeKind.ASKED: {
        "title": "Decision needed",
        "when": "when a gate opens that you may decide, or is handed over to you",
    },
    NoticeKind.REMINDER: {"title": "Reminder", "when": "when its deadline is near and you have not decided"},
    NoticeKind.DECIDED: {"title": "How it ended", "when": "when a gate that you were asked about ends"},
    NoticeKind.MENTION: {"title": "Mention", "when": "when somebody writes your name at a gate, or hands it to you"},
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


register.simple_tag(lambda kind: KINDS[NoticeKind(kind)], name="notice_kind")  # its title, and when it is sent
register.simple_tag(lambda: LEVELS, name="levels")  # the choices of a kind and channel
register.simple_tag(lambda: LEADS, name="leads")  # the choices of a reminder's time


@register.simple_tag
def weekdays() -> list[tuple[int, Any, Any]]:
    """Return the days of the week, each with its short and its long name."""
    return [(number, WEEKDAYS_ABBR[number], WEEKDAYS[number]) for number in range(7)]


@register.simple_tag(takes_context=True)
def channel_form(context: RequestContext, channel: NoticeChannel) -> SafeString:
    """Render how addresses of a channel are added and removed, or which of the reader's teams have one in it."""
    names = [f"notifications/channels/{channel.name}.html"]
    names += ["notifications/channels/_shared.html"] if channel.takes else []
    try:
        found = select_template(names)
    except TemplateDoesNotExist:
        return SafeString("")
    with context.push(name=channel.name):
        return found.template.render(context)  # type: ignore[no-any-return]


class ShownAddress(NamedTuple):
    """One address, with what became of it."""

    address: ChannelAddress
    gone_words: str
    signed_in: bool
    reached_at: datetime | None


@register.simple_tag(takes_context=True)
def pushing(context: Context) -> dict[str, Any]:
    """Return the key under which browsers subscribe, "" where none can, and the reader's browsers."""
    found = list(browsers.listed(_reader(context)))
    sent = Message.objects.filter(address__in=[each.pk for each in found], status=Message.Status.SENT)
    reached = dict(sent.values_list("address").annotate(at=Max("finished_at")))
    there = dict(pushed.reachable().filter(pk__in=[each.pk for each in found]).values_list("pk", "signed_in"))
    shown = [
        ShownAddress(
            address=each,
            gone_words=log.words(each.gone_word) if each.gone_at else "",
            signed_in=there.get(each.pk, False),
            reached_at=reached.get(each.pk),
        )
        for each in found
    ]
    return {"key": vapid.public_key(), "browsers": shown}


@register.simple_tag(takes_context=True)
def in_slack(context: Context) -> dict[str, Any]:
    """Return whether there is a bot, and why it does not reach the reader."""
    reader = _reader(context)
    known = ChannelAddress.objects.filter(channel=slack.NAME, user=reader, label=reader.email[:100]).first()
    return {
        "bot": bool(settings.HOLDPOINT_SLACK_TOKEN),
        "email": reader.email,
        "why": log.words(known.gone_word) if known and known.gone_at else "",
    }


@register.simple_tag(takes_context=True)
def shared_channels(context: Context, name: str) -> list[ChannelAddress]:
    """List the channels of the reader's teams, in which all of the teams' gates are told."""
    found = ChannelAddress.objects.usable(name).filter(team__in=own_teams(_reader(context)))
    return list(found.select_related("team").order_by("team__name", "label", "pk"))


def _reader(context: Context) -> User:
    user: User = context["user"]
    return user
