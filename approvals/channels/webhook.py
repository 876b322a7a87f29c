"""The channel of one webhook: its messages are sent as they were written, signed, a few at once.

Each webhook is a channel of its own, so that a receiver that takes its time keeps one worker busy and delays nobody
else's messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.conf import settings

from approvals.models import Message, Webhook
from approvals.models.notifications.channel_state import channel_of, number_in
from approvals.models.webhook import GONE, SECRET_LOST
from approvals.notifications import delivering
from approvals.notifications.channel import MessageChannel, Receipt, Result
from approvals.outbound import sending
from approvals.webhooks import outbox

SLICE = 2.0  # seconds of sending
CONNECTIONS = 2  # so that a message that takes long does not keep all others waiting


class WebhookChannel(MessageChannel):
    """The channel."""

    at_once = 5

    def __init__(self, webhook: Webhook) -> None:
        self.webhook, self.name = webhook, channel_of(webhook.pk)
        self.secrets = webhook.secrets()

    @property
    def connections(self) -> int:
        return CONNECTIONS

    @property
    def pauses(self) -> Sequence[float]:
        pauses: Sequence[float] = settings.HOLDPOINT_WEBHOOKS_RETRIES
        return pauses

    def send(self, body: bytes, to: Any, *, key: str, earlier: str = "") -> Receipt:
        """Sign one message, by its id `key`, and send it."""
        if not self.secrets:
            return Receipt(Result.LATER, SECRET_LOST)
        signed = sending.headers(key, body, at=datetime.now(UTC), by=self.secrets)
        came = sending.send(self.webhook.url, body, signed)
        result = Result.SENT if came.delivered else Result.GONE if came.word == GONE else Result.LATER
        return Receipt(result, came.word, retry_after=came.retry_after, answer=came.status)

    def ended(self, receipts: Sequence[Receipt]) -> bool:
        """Record how the webhook fares; tell whether more may be sent to it."""
        for receipt in receipts:
            self.webhook.heard(receipt.word, delivered=receipt.result is Result.SENT)
        return Webhook.objects.enabled().filter(pk=self.webhook.pk).exists()


def find(name: str) -> WebhookChannel | None:
    """Return the channel of the webhook that is named, where it is enabled."""
    webhook = Webhook.objects.enabled().filter(pk=number_in(name) or 0).first()
    return WebhookChannel(webhook) if webhook else None


def run_slice(webhook: int) -> int:
    """Send what is due to a webhook for a moment; ring where something is left. Return how many were dealt with."""
    done = delivering.deliver(channel_of(webhook), seconds=SLICE)
    if Message.objects.due_channels([channel_of(webhook)]):
        outbox.ring([webhook])
    return done


def waiting() -> list[tuple[int, int]]:
    """List the enabled webhooks to which something is to be sent now, each with a number that changes with the work."""
    numbers = {channel_of(pk): pk for pk in Webhook.objects.enabled().values_list("pk", flat=True)}
    return [(numbers[name], token) for name, token in Message.objects.due_channels(list(numbers))]
