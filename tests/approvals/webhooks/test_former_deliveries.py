"""What the release before left in its own outbox is moved when an update ends, and sent under the same id."""

from __future__ import annotations

import pytest
from django.db import connection

from approvals.models import Message, MessageAttempt, Webhook, former_deliveries
from tests.factories import make_gate, make_team

from .made_webhooks import make_webhook, results, sent
from .receiver import Receiver

DELIVERY = """
INSERT INTO approvals_delivery (webhook_id, gate_id, message, kind, body, status, result, attempts, tries,
  next_attempt_at, token) VALUES (%s, %s, %s, %s, '{"type":"x"}', %s, %s, 1, 1, %s, 0) RETURNING id
"""
ATTEMPT = "INSERT INTO approvals_attempt (delivery_id, number, result, status) VALUES (%s, 1, %s, %s)"


def left_by_the_release_before(webhook: Webhook, message: str, *, kind: str, status: str, result: str) -> None:
    gate = make_gate(team=webhook.team)
    due = "2026-01-01T00:00:00Z" if status == "pending" else None
    with connection.cursor() as cursor:
        cursor.execute(DELIVERY, [webhook.pk, gate.pk, message, kind, status, result, due])
        cursor.execute(ATTEMPT, [*cursor.fetchone(), result, 503])


def test_each_is_moved_once_with_its_attempts_and_what_waits_is_sent(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(former_deliveries, "AT_ONCE", 2)
    webhook, secret = make_webhook(receiver.url, team=make_team())
    for number, (status, result) in enumerate(
        [("delivered", "delivered"), ("pending", "http_503"), ("failed", "http_500")]
    ):
        left_by_the_release_before(webhook, f"msg_{number}", kind="before", status=status, result=result)
    assert former_deliveries.move() == 3
    assert former_deliveries.move() == 0
    moved = Message.objects.filter(webhook=webhook, kind="before").order_by("name")
    columns = ("name", "status", "word", "attempts", "tries")
    assert list(moved.values_list(*columns)) == [
        ("msg_0", "sent", "delivered", 1, 1), ("msg_1", "pending", "http_503", 1, 1),
        ("msg_2", "failed", "http_500", 1, 1),
    ]  # fmt: skip
    assert MessageAttempt.objects.filter(message__in=moved, status=503).count() == 3
    waiting = moved[1]
    Message.objects.filter(webhook=webhook).exclude(pk=waiting.pk).update(next_attempt_at=None, status="dropped")
    assert sent(waiting) == "delivered"
    assert results(waiting) == ["http_503", "delivered"]
    assert [got.id for got in receiver.got] == ["msg_1"]
    assert receiver.got[0].verified(secret)
