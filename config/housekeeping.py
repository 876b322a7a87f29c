"""Celery tasks started by beat: the canary, which shows that workers work, and the nightly clearing of old rows."""

from __future__ import annotations

from datetime import timedelta

from celery import shared_task
from django.conf import settings
from django.core.management import call_command

from agents.models import Answer, Spoken, Worker
from approvals.models import BulkOrder, Draft, Looking, SignedIn, Snooze
from approvals.notifications import log
from config.messages import record_canary

DRAFTS_STAY = timedelta(days=30)  # after their gate has closed
ANSWERS_STAY = timedelta(days=7)  # for whoever sends a request again with its key


@shared_task
def sing() -> None:
    """Record that a worker took a message."""
    record_canary(settings.REDIS_URL)


@shared_task
def clear_sessions() -> None:
    """Delete expired sessions, and their rows in people's lists."""
    call_command("clearsessions")
    SignedIn.objects.outlived().delete()


@shared_task
def clear_drafts() -> None:
    """Delete old drafts and bulk decisions, snoozes that are over, and rows of pages, live texts and workers gone."""
    Draft.objects.outlived(DRAFTS_STAY).delete()
    BulkOrder.objects.outlived(DRAFTS_STAY).delete()
    Snooze.objects.over().delete()
    Looking.objects.gone().delete()
    Spoken.objects.left().delete()
    Worker.objects.outlived().delete()


@shared_task
def clear_messages() -> None:
    """Delete old messages to people and to webhooks, with their attempts."""
    log.clear()


@shared_task
def clear_answers() -> None:
    """Delete old answers that were kept under idempotency keys."""
    Answer.objects.outlived(ANSWERS_STAY).delete()
