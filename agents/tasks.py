"""Celery's side of the runner: a message says "look at this run", PostgreSQL says what there is to do."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from celery.signals import celeryd_init, worker_process_init

from . import registry, runner

# Celery closes Django's connections, and in a prefork worker their whole pool, before and after every task: 20 ms of
# connecting for 3 ms of work. The runner looks after its connection itself.
TASKS_A_CONNECTION = 1_000_000_000


@shared_task(name="agents.advance", ignore_result=True, acks_late=True)
def advance(run_id: int) -> None:
    """Take the run as far as it goes."""
    runner.advance(run_id)


@celeryd_init.connect
def keep_connections(conf: Any, **_: Any) -> None:
    """Have Celery leave the connections open between tasks."""
    conf["CELERY_DB_REUSE_MAX"] = TASKS_A_CONNECTION


@worker_process_init.connect
def warm(**_: Any) -> None:
    """Read the plans before the first message, so that it need not wait for them."""
    registry.plans()
