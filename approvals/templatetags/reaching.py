"""Template tags of the notification settings: the browsers, the person in Slack, and the channels of their teams."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, NamedTuple

from django import template
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Max
from django.template import Context

from approvals.channels import browsers, slack, teams, vapid
from approvals.models import ChannelAddress, Notice
from approvals.notifications import channel, log

register = template.Library()


class ShownAddress(NamedTuple):
    """One address, with what became of it."""

    address: ChannelAddress
    gone_words: str
    reached_at: datetime | None = None
    service: str = ""


@register.simple_tag(takes_context=True)
def pushing(context: Context) -> dict[str, Any]:
    """Return the key under which browsers subscribe, "" where none can, and the reader's browsers."""
    found = list(browsers.listed(_reader(context)))
    sent = Notice.objects.filter(address__in=[each.pk for each in found], status=Notice.Status.SENT)
    reached = dict(sent.values_list("address").annotate(at=Max("finished_at")))
    return {"key": vapid.public_key(), "browsers": _shown(found, reached)}


@register.simple_tag(takes_context=True)
def chatting(context: Context) -> dict[str, Any]:
    """Return how the reader is found in Slack, and the channels of their teams."""
    reader = _reader(context)
    own = ChannelAddress.objects.filter(channel=slack.NAME, user=reader, mark=slack.BY_MAIL)
    of_teams = ChannelAddress.objects.filter(channel__in=(slack.NAME, teams.NAME), team__in=reader.groups.all())
    listed = of_teams.filter(gone_at__isnull=True).select_related("team").order_by("team__name", "label", "pk")
    return {
        "bot": bool(settings.HOLDPOINT_SLACK_TOKEN),
        "email": reader.email,
        "own": next(iter(_shown(own)), None),
        "channels": _shown(listed),
    }


def _reader(context: Context) -> User:
    user: User = context["user"]
    return user


def _shown(found: Iterable[ChannelAddress], reached: dict[int, datetime] | None = None) -> list[ShownAddress]:
    return [
        ShownAddress(
            each, log.words(each.gone_word) if each.gone_at else "", (reached or {}).get(each.pk), _service(each.channel)
        )
        for each in found
    ]


def _service(name: str) -> str:
    known = channel.registered(name)
    return str(known.label) if known else name
