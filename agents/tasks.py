"""Celery's side of the runner: a message says "look at this run", PostgreSQL says what there is to do."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from celery.signals import worker_process_init, worker_process_shutdown

from . import registry, runner
from .serving import announcing


@shared_task(name="agents.advance", ignore_result=True)
def advance(run_id: int) -> None:
    """Take the run as far as it goes."""
    runner.advance(run_id)


@worker_process_init.connect
def warm(**_: Any) -> None:
    """Read the plans before the first message, so that it need not wait for them, and say that this process serves."""
    registry.plans()
    announcing.begin()


@worker_process_shutdown.connect
def leave(**_: Any) -> None:
    """Say that this process serves no more."""
    announcing.end()
