"""The Celery tasks and signal handlers of workers: a message names a run, PostgreSQL holds what there is to do."""

from __future__ import annotations

from typing import Any

from celery import shared_task
from celery.signals import worker_init, worker_process_init, worker_process_shutdown, worker_ready, worker_shutdown

from .moves import child_orders
from .questions import answering
from .runner import engine
from .serving import announcing, worker_start


@shared_task(name="agents.advance", ignore_result=True)
def advance(run_id: int) -> None:
    """Take the run as far as it goes."""
    engine.advance(run_id)


@shared_task(name="agents.children", ignore_result=True)
def children(run_id: int) -> None:
    """Carry out what the run ordered its children, and end them with it."""
    child_orders.carry_out(run_id)
    child_orders.end_with(run_id)


@shared_task(name="agents.question", ignore_result=True)
def question(number: int) -> None:
    """Have an agent answer a person's question at a gate."""
    answering.answer(number)


@worker_init.connect
def warm(sender: Any, **_: Any) -> None:
    """Read the agents and their plans in the parent, so that each worker process inherits them.

    The handler of a process's start is connected only here, so that it runs after Celery's own, which closes the
    database's connections and their pool. In the pools whose runs share one process, that is this one.
    """
    worker_start.warm()
    announcing.oversee()
    if worker_start.is_shared(sender.pool_cls):
        worker_start.share_process(sender.concurrency)
        worker_shutdown.connect(announcing.end)
    else:
        worker_process_init.connect(announcing.begin)


worker_process_shutdown.connect(announcing.end)
worker_ready.connect(announcing.watch)
