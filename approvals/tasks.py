"""The Celery tasks of verifications, webhooks and notices: a message names a row, and the database says what to do."""

from __future__ import annotations

from celery import shared_task

from approvals.notifications import delivering

from .audit import seal_verification
from .channels import webhook as webhook_channel


@shared_task(name="approvals.verify", ignore_result=True)
def verify(verification: int) -> None:
    """Run one slice of a verification."""
    seal_verification.go_on(verification)


@shared_task(name="approvals.deliver", ignore_result=True)
def deliver(webhook: int) -> None:
    """Send what is due to a webhook, for a few seconds."""
    webhook_channel.run_slice(webhook)


@shared_task(name="approvals.notify", ignore_result=True)
def notify(_: int) -> None:
    """Write the notices of new events, and send what is due, for a few seconds."""
    delivering.run_slice()
