"""Celery's side of retention: a message only says "continue"; PostgreSQL holds what there is to continue."""

from __future__ import annotations

from contextlib import suppress

from celery import shared_task
from django.utils import timezone
from kombu.exceptions import OperationalError

from checkpoints.retention.prunes import hold_prune_lock

from .actors import SYSTEM
from .models import Prune
from .retention import prunes

SLICE = 10.0  # seconds of work for one message, so that other tasks get their turn


@shared_task(name="checkpoints.prune", ignore_result=True)
def prune() -> None:
    """Continue dry runs and prunes by one slice, and send the next message while there is more.

    A message does nothing while another worker is pruning: else every page view and every minute would start another
    endless chain of messages, until no worker was left for anything else.
    """
    with hold_prune_lock() as mine:
        more = mine and prunes.go_on(seconds=SLICE)
    if more:
        prune.delay()


def ring() -> None:
    """Ask a worker to continue. If the message is lost, beat's next one does the same."""
    with suppress(OperationalError):
        prune.apply_async(retry=False)


@shared_task(name="checkpoints.prune_nightly", ignore_result=True)
def prune_nightly() -> None:
    """Begin the nightly prune, once a day, and drop old dry runs."""
    prunes.drop_old()
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    if not Prune.objects.filter(nightly=True, at__gte=today).exists():
        prunes.begin(by=SYSTEM, nightly=True)
    prune.delay()
