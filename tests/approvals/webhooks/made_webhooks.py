"""Webhooks and their deliveries, and time that passes for them."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.contrib.auth.models import Group, User
from django.db.models.functions import Now
from django.test import Client

from approvals.models import Attempt, Delivery, Gate, Webhook
from approvals.webhooks import outbox
from approvals.webhooks.delivering import deliver
from checkpoints.actors import SYSTEM
from tests.factories import make_team, make_user
from tests.harness.signed_in_clients import signed_in

SOON = dt.timedelta(seconds=1)
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
    return list(Delivery.objects.filter(gate=gate).order_by("pk"))


def fresh(delivery: Delivery) -> Delivery:
    return Delivery.objects.select_related("webhook").get(pk=delivery.pk)


def later(delivery: Delivery) -> None:
    """It is due now: its pause is over."""
    Delivery.objects.filter(pk=delivery.pk, status="pending").update(next_attempt_at=Now() - SOON)


def abandoned(delivery: Delivery) -> None:
    """Whoever has it in hand has been silent for too long."""
    Delivery.objects.filter(pk=delivery.pk).update(busy_until=Now() - SOON)


def sent(delivery: Delivery) -> str:
    """Send it now, whatever its pause; what came of it."""
    later(delivery)
    found = deliver(delivery.pk)
    assert found is not None, "it was not due"
    return found.word


def results(delivery: Delivery) -> list[str]:
    return list(Attempt.objects.filter(delivery=delivery).order_by("number").values_list("result", flat=True))


def columns(delivery: Delivery, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(fresh(delivery), name) for name in names)
