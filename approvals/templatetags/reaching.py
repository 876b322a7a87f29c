"""Template tags of the notification settings: the browsers, the person in Slack, and the channels of their teams."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from django import template
from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import Max
from django.template import Context

from approvals.accounts import pushed
from approvals.channels import browsers, slack, vapid
from approvals.models import ChannelAddress, Notice
from approvals.notifications import log
from checkpoints.access.permissions import own_teams

register = template.Library()


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
    sent = Notice.objects.filter(address__in=[each.pk for each in found], status=Notice.Status.SENT)
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
