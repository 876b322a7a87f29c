"""The Celery tasks of verifications, webhooks and notices: a message names a row, and the database says what to do."""

from __future__ import annotations

from celery import shared_task

from .audit import seal_verification
from .notifications import notifying
from .webhooks import delivering


@shared_task(name="approvals.verify", ignore_result=True)
def verify(verification: int) -> None:
    """Run one slice of a verification."""
    seal_verification.go_on(verification)


@shared_task(name="approvals.deliver", ignore_result=True)
def deliver(delivery: int) -> None:
    """Send a message to a webhook, where it is due."""
    delivering.deliver(delivery)


@shared_task(name="approvals.notify", ignore_result=True)
def notify(_: int) -> None:
    """Write the notices of new events, and send what is due, for a few seconds."""
    notifying.run_slice()
