"""Makes one attempt at a delivery: takes it, sends it outside of any transaction, records it, rings for the next."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta

import structlog
from django.conf import settings

from approvals.models import Delivery
from approvals.outbound import sending, signing
from approvals.outbound.sending import SendResult
from checkpoints import crash_points

from . import ringing, schedule

log = structlog.get_logger()


def deliver(number: int) -> SendResult | None:
    """Send a delivery that is due; return the result, None where there was nothing to do."""
    attempt = Delivery.objects.take(number)
    if attempt is None:
        return None
    delivery = attempt.delivery
    crash_points.point("webhook_taken")
    pauses = settings.HOLDPOINT_WEBHOOKS_RETRIES
    began = time.monotonic()
    sent = SendResult("lost") if schedule.spent(delivery.tries, pauses) else _send(delivery)
    crash_points.point("webhook_sent")
    spread = random.uniform(-1, 1)  # noqa: S311 - no secret
    pause = schedule.pause(delivery.tries, pauses, spread=spread, asked=sent.retry_after)
    delivery.end(attempt, sent, duration=timedelta(seconds=time.monotonic() - began), pause=pause)
    log.info(
        "webhook.sent", webhook=delivery.webhook_id, delivery=delivery.pk, attempt=attempt.number, result=sent.word
    )
    ringing.ring(number for number, _ in Delivery.objects.first_due(delivery.webhook_id))
    return sent


def _send(delivery: Delivery) -> SendResult:
    secrets = delivery.webhook.secrets()
    if not secrets:
        return SendResult("secret_lost")
    body = bytes(delivery.body)
    signed = signing.headers(delivery.message, body, at=datetime.now(UTC), by=secrets)
    return sending.send(delivery.webhook.url, body, signed)
