"""Celery's side of a verification: a message says "go on with this one", PostgreSQL says whether there is anything."""

from __future__ import annotations

from celery import shared_task

from .audit import verifying


@shared_task(name="approvals.verify", ignore_result=True, acks_late=True)
def verify(verification: int) -> None:
    """Take a verification one slice further."""
    verifying.go_on(verification)
