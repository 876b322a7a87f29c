"""What a worker reads once, in its parent process, for all the processes that it starts from then on.

A process that reads as it begins waits for PostgreSQL, and Celery kills one that is silent for seconds and starts the
next: with PostgreSQL away a worker did nothing but that. So the parent waits, before there is another process.
"""

from __future__ import annotations

import time

import structlog
from django.db import Error, connections

from agents.definition import registry
from checkpoints.errors import UnfitDatabase
from checkpoints.postgresql import fitness

EVERY = 1.0  # seconds between two tries to read
log = structlog.get_logger()


def warm() -> None:
    """Read the agents, store their plans and tell what cannot be served.

    Waits for as long as PostgreSQL is away. Leaves no connection and no pool: its threads would not be inherited.
    Raises SystemExit where PostgreSQL is unfit; Celery passes over any other error of what it calls as it begins.
    """
    for sentence in registry.faults():
        log.warning(sentence)
    said = None
    while (why := _stored()) is not None:
        if why != said:
            log.warning(f"The worker waits until it can read its plans from PostgreSQL: {why}")
        said = why
        time.sleep(EVERY)
    if said is not None:
        log.info("PostgreSQL is back: the worker begins.")


def _stored() -> str | None:
    """Store the plans; return None, or in a line why that cannot be done now."""
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
