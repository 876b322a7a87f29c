"""What beat asks for: the canary that proves that workers work, and clearing sessions at night."""

from __future__ import annotations

from celery import shared_task
from django.conf import settings
from django.core.management import call_command

from config import canary


@shared_task
def sing() -> None:
    """Say that a worker took a message."""
    canary.sing(settings.REDIS_URL)


@shared_task
def clear_sessions() -> None:
    """Delete the sessions that have ended."""
    call_command("clearsessions")
