"""Clearing at night what was sent long ago, some at a time."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings

from approvals.models import Delivery

AT_ONCE = 1000  # rows a transaction


def clear() -> int:
    """Delete the deliveries that are older than they are kept, with their attempts; return how many."""
    kept, gone = timedelta(days=settings.HOLDPOINT_WEBHOOKS_KEEP_DAYS), 0
    while numbers := list(
        Delivery.objects.outlived(kept).order_by("created_at").values_list("pk", flat=True)[:AT_ONCE]
    ):
        Delivery.objects.filter(pk__in=numbers).delete()
        gone += len(numbers)
    return gone
