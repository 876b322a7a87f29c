"""What a worker reads once, in its parent process, for all the processes that it starts from then on.

A process that reads as it begins waits for PostgreSQL, and Celery kills one that is silent for seconds and starts the
next: with PostgreSQL away a worker did nothing but that. What cannot be read now is read with the first message.
"""

from __future__ import annotations

import structlog
from django.db import Error, connections

from .. import registry

log = structlog.get_logger()


def warm() -> None:
    """Read the agents, and store their plans. Leaves no connection and no pool: its threads would not be inherited."""
    registry.declared()
    try:
        registry.plans()
    except Error as error:
        log.warning("worker.not_warmed", error=str(error))
    finally:
        for connection in connections.all(initialized_only=True):
            connection.close()
            if hasattr(connection, "close_pool"):
                connection.close_pool()
