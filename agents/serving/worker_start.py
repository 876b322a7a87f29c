"""Begins a worker: its parent loads agents and plans once for its processes, or its threads share one process.

A child that loaded them itself would wait for PostgreSQL, and Celery kills a child that is silent for seconds and
starts the next, over and over. So the parent waits, before it starts any.

Where several runs share one process, each thread has a connection to PostgreSQL of its own, which goes back to the
process's pool after each message.
"""

from __future__ import annotations

import time
from typing import Any

import structlog
from celery.concurrency import thread
from celery.signals import task_postrun
from django.conf import settings
from django.db import Error, connections

from agents.definition import registry
from checkpoints.errors import UnfitDatabase
from checkpoints.postgresql import fitness

from . import announcing

BESIDE = 3  # connections besides those of the runs: for the heartbeat, the announcements and one more
EVERY = 1.0  # seconds between two tries to read
log = structlog.get_logger()


def warm() -> None:
    """Read the agents, store their plans and log what cannot be served.

    Waits for as long as PostgreSQL is away. Leaves no connection and no pool: its threads would not be inherited.
    Raises SystemExit where PostgreSQL is unfit; Celery ignores any other error of a handler of its start.
    """
    for sentence in registry.faults():
        log.warning(sentence)
    refusal = None
    while (why := _stored()) is not None:
        if why != refusal:
            log.warning(f"The worker waits until it can read its plans from PostgreSQL: {why}")
        refusal = why
        time.sleep(EVERY)
    if refusal is not None:
        log.info("PostgreSQL is back: the worker begins.")


def _stored() -> str | None:
    """Store the plans; return None, or one line that says why that is impossible now. Raises SystemExit."""
    try:
        fitness.refuse()
        registry.plans()
        for sentence in registry.changed():
            log.warning(sentence)
    except UnfitDatabase as unfit:
        raise SystemExit(str(unfit)) from None
    except Error as error:
        return str(error).partition("\n")[0]
    finally:
        for connection in connections.all(initialized_only=True):
            connection.close()
            if hasattr(connection, "close_pool"):
                connection.close_pool()
    return None


def is_shared(pool: type) -> bool:
    """Tell whether runs share a process in this pool, a class of Celery."""
    return issubclass(pool, thread.TaskPool)


def share_process(concurrency: int) -> None:
    """Let this process take so many runs at once. Called once, before it takes any."""
    pool = settings.DATABASES["default"]["OPTIONS"]["pool"]
    pool["max_size"] = max(pool["max_size"], concurrency + BESIDE)
    task_postrun.connect(_give_back)
    announcing.begin()


def _give_back(**_: Any) -> None:
    """Give the connection of this thread back to the pool."""
    for connection in connections.all(initialized_only=True):
        connection.close()
