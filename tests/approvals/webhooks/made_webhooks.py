"""Webhooks and their deliveries, and time that passes for them."""

from __future__ import annotations

import datetime as dt
from typing import Any, TypeAlias

from django.contrib.auth.models import Group, User
from django.db.models.functions import Now
from django.test import Client

from approvals.channels.webhook import run_slice
from approvals.models import ChannelState, Gate, Message, MessageAttempt, Webhook
from approvals.models.notifications.channel_state import channel_of
from approvals.webhooks import outbox
from checkpoints.actors import SYSTEM
from tests.factories import make_team, make_user
from tests.harness.signed_in_clients import signed_in

SOON = dt.timedelta(seconds=1)
Delivery: TypeAlias = Any  # a Message that has a webhook and a body
MANAGE = ("approvals.manage_webhooks",)


def operator(team: Group) -> Client:
    """Staff who manages the team's webhooks and channels."""
    user = make_user("Olga Operator", team, may=MANAGE)
    User.objects.filter(pk=user.pk).update(is_staff=True)
    return signed_in(user)


def make_webhook(
    url: str = "https://hooks.example.com/", *, team: Group | None = None, agent: str = ""
) -> tuple[Webhook, str]:
    return Webhook.objects.make(team=team or make_team(), url=url, agent=agent, purpose="tests", by=SYSTEM)


def make_delivery(url: str = "https://hooks.example.com/") -> tuple[Delivery, str]:
    """A message that waits to be sent, and the secret that signs it."""
    webhook, secret = make_webhook(url)
    return one_more(webhook), secret


def one_more(webhook: Webhook) -> Delivery:
    made = outbox.test(webhook, by=SYSTEM)
    assert made is not None
    return made


def of(gate: Gate) -> list[Delivery]:
    return list(Message.objects.filter(gate=gate).order_by("pk"))


def fresh(delivery: Message) -> Delivery:
    return Message.objects.select_related("webhook").get(pk=delivery.pk)


def later(delivery: Message) -> None:
    """It is due now: its pause is over, and its channel's rest."""
    Message.objects.filter(pk=delivery.pk, status="pending").update(next_attempt_at=Now() - SOON)
    ChannelState.objects.update(paused_until=None)


def abandoned(delivery: Message) -> None:
    """Whoever has it in hand has been silent for too long."""
    Message.objects.filter(pk=delivery.pk).update(busy_until=Now() - SOON)
    ChannelState.objects.update(busy_until=None)


def take(delivery: Message) -> Message:
    """Have a sender take it, hand it over and say nothing more."""
    [taken] = Message.objects.take(channel_of(webhook_of(delivery)), 1)
    assert Message.objects.hand_over([taken]) == [taken]
    return taken


def webhook_of(delivery: Message) -> int:
    assert delivery.webhook_id is not None
    return delivery.webhook_id


def deliver(delivery: Message) -> int:
    """Send what is due to its webhook; how much there was."""
    return run_slice(webhook_of(delivery))


def sent(delivery: Message) -> str:
    """Send it now, whatever its pause; what came of it."""
    later(delivery)
    assert deliver(delivery), "it was not due"
    return results(delivery)[-1]


def results(delivery: Message) -> list[str]:
    return list(MessageAttempt.objects.filter(message=delivery).order_by("number").values_list("result", flat=True))


def columns(delivery: Message, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(fresh(delivery), name) for name in names)
