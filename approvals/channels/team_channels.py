"""Chat channels in which all gates of a team are told: added, tried out and removed by those who manage its webhooks.

The address of a webhook lets anybody write there, so it is stored sealed, shown to nobody, and named by its host.
"""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

from django.contrib.auth.models import Group
from django.db import transaction

from approvals.english import count_of
from approvals.models import ChannelAddress
from approvals.notifications import account, channel, log
from approvals.notifications.channel import NoticeChannel, Receipt, Result
from approvals.outbound import sending, targets
from checkpoints.actors import Actor
from checkpoints.events import event_log

from .browsers import REMOVED

MOST = 20  # channels of one team: each gate sends a message to every one


class ChannelRefused(Exception):
    """The channel cannot be as it is asked for; the sentence says what to change."""


class Tried(NamedTuple):
    """The result of a test message."""

    arrived: bool
    why: str  # where it did not arrive, as a part of a sentence


def services() -> list[NoticeChannel]:
    """List the channels in which a team may have an address."""
    return [each for each in channel.channels() if each.takes]


def fault(service: str, address: str) -> str:
    """Say why no message can be sent to this address of a service, and what to do; "" where one can."""
    known = next((each for each in services() if each.name == service), None)
    return known.fault(address) if known else "There is no such service."


def full(team: Group) -> str:
    """Say why the team takes no more channels; "" where it does."""
    there = ChannelAddress.objects.filter(team=team, gone_at__isnull=True).count()
    if there < MOST:
        return ""
    return f"The team has {count_of(there, 'channel')}."


def add(team: Group, service: str, address: str, *, label: str, by: Actor) -> ChannelAddress:
    """Add a channel, or one that was removed or lost again, with its event. Raises ChannelRefused."""
    if why := fault(service, address):
        raise ChannelRefused(why)
    is_url = "://" in address  # whoever has it may write there; the id of a channel is no secret
    value = sending.seal(address) if is_url else address
    mark = hashlib.sha256(address.encode()).hexdigest()
    with transaction.atomic():
        Group.objects.select_for_update(no_key=True).get(pk=team.pk)  # the second of two at once counts the first
        if why := full(team):
            raise ChannelRefused(why)
        made, _created = ChannelAddress.objects.update_or_create(
            channel=service, user=None, team=team, mark=mark,
            defaults={"value": value, "label": label[:100], "gone_at": None, "gone_word": ""},
        )  # fmt: skip
        told = {"service": service, "host": targets.host_of(address) if is_url else ""}
        _say("channel.added", made, by=by, data=told)
    return made


def remove(found: ChannelAddress, *, by: Actor) -> bool:
    """Send nothing more there. False where it was removed or lost before."""
    with transaction.atomic():
        if not ChannelAddress.objects.filter(pk=found.pk).lose(REMOVED):
            return False
        _say("channel.removed", found, by=by)
    return True


def test(found: ChannelAddress, *, by: Actor) -> Tried:
    """Send a test message now, with its event, and say what came of it."""
    known = channel.registered(found.channel)
    if known is None or found.team_id is None:
        raise ChannelRefused("There is no such service.")
    there = next((each for each in known.addresses(teams=[found.team_id]) if each.id == found.pk), None)
    if there is None:
        return Tried(False, log.words(found.gone_word))
    with transaction.atomic():
        _say("channel.tested", found, by=by)
    with known.session() as session:
        came: Receipt = session.send(account.test(), there, key=f"test.{found.pk}")
    if came.result == Result.GONE:
        ChannelAddress.objects.filter(pk=found.pk).lose(came.word)
    return Tried(came.result == Result.SENT, log.words(came.word))


def _say(kind: str, found: ChannelAddress, *, by: Actor, data: dict[str, Any] | None = None) -> None:
    event_log.record(kind, subject=f"channel:{found.pk}", by=by, team_id=found.team_id, data=data)
