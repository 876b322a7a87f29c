"""Worker pools in which several runs share one process: threads, and gevent's greenlets.

Each has a connection to PostgreSQL of its own, which goes back to the process's pool after each message: a greenlet
ends with its message, and what it held would be missing from the pool for ever.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import structlog
from celery.signals import task_postrun
from django.conf import settings
from django.db import connections

from agents.session.heartbeat import HEART
from agents.steps import alarms

from . import announcing

SHARED = ("threads", "thread_pool", "gevent")  # names of pools, and of the modules of their classes
BESIDE = 3  # connections besides those of the runs: for the heartbeat, the announcements and one more
GUARD_EVERY = 1.0  # seconds
SAID = b"step.killed: a step computed past its time limit, and no other run here could go on\n"
log = structlog.get_logger()


def is_shared(pool: Any) -> bool:
    """Tell whether runs share a process in this pool, named or as Celery's class."""
    name: str = pool if isinstance(pool, str) else pool.__module__
    return name.rpartition(".")[2] in SHARED


def begin(concurrency: int) -> None:
    """Let this process take so many runs at once. Called once, before it takes any."""
    pool = settings.DATABASES["default"]["OPTIONS"]["pool"]
    pool["max_size"] = max(pool["max_size"], concurrency + BESIDE)
    task_postrun.connect(give_back)
    if alarms.in_greenlets():
        _guard()
    announcing.begin()


def give_back(**_: Any) -> None:
    """Give the connection of this thread or greenlet back to the pool."""
    for connection in connections.all(initialized_only=True):
        connection.close()


def _guard() -> None:
    """Watch the heartbeat from a thread of the system's, which runs where a step lets no greenlet run.

    Then no run of this process goes on, their leases run out, and the process is killed.
    """
    from gevent import monkey  # noqa: PLC0415 - only workers with its pool load it

    sleep = monkey.get_original("time", "sleep")

    def watch() -> None:
        while True:
            sleep(GUARD_EVERY)
            if HEART.stands_still():
                os.write(2, SAID)
                os.kill(os.getpid(), signal.SIGKILL)

    monkey.get_original("_thread", "start_new_thread")(watch, ())
