"""Loads the agents and plans once in a worker's parent process, for all the processes that it starts.

A child that loaded them itself would wait for PostgreSQL, and Celery kills a child that is silent for seconds and
starts the next, over and over. So the parent waits, before it starts any.
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
