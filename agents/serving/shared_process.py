"""The worker pool in which several runs share one process: threads.

Each has a connection to PostgreSQL of its own, which goes back to the process's pool after each message.
"""

from __future__ import annotations

from typing import Any

from celery.concurrency import thread
from celery.signals import task_postrun
from django.conf import settings
from django.db import connections

from . import announcing

BESIDE = 3  # connections besides those of the runs: for the heartbeat, the announcements and one more


def is_shared(pool: Any) -> bool:
    """Tell whether runs share a process in this pool, named or as Celery's class."""
    return pool == "threads" if isinstance(pool, str) else issubclass(pool, thread.TaskPool)


def begin(concurrency: int) -> None:
    """Let this process take so many runs at once. Called once, before it takes any."""
    pool = settings.DATABASES["default"]["OPTIONS"]["pool"]
    pool["max_size"] = max(pool["max_size"], concurrency + BESIDE)
    task_postrun.connect(give_back)
    announcing.begin()


def give_back(**_: Any) -> None:
    """Give the connection of this thread back to the pool."""
    for connection in connections.all(initialized_only=True):
        connection.close()
