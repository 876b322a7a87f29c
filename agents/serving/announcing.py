"""Announces a worker process every few seconds in PostgreSQL, which does not depend on Redis.

The process gets its messages from its parent, so it announces itself only while its parent runs: a thread of the parent
notes the time in memory that both share. It is a thread because the parent's own loop stops while Redis is away; a loop
that hangs for another reason is ended by `deaf_workers`.
"""

from __future__ import annotations

import mmap
import threading
import time
from typing import Any

import redis
import structlog
from django.db import Error, connection

from agents.definition import registry
from agents.models import Worker
from agents.ringing import queues
from agents.runner import engine
from checkpoints.errors import CheckpointError
from checkpoints.models import Plan

EVERY = 5.0  # seconds
GAP = 3  # times as long between two looks: this process was paused, and maybe its parent with it
STILL = 30.0  # seconds without a note of the parent's, after which it is taken for one that stands still
log = structlog.get_logger()
_stopped = threading.Event()
_ran = memoryview(mmap.mmap(-1, 8)).cast("d")  # when the parent last ran, by the monotonic clock


def oversee() -> None:
    """Note from now on that this parent process runs. Called once, before it starts others."""
    _ran[0] = time.monotonic()
    threading.Thread(target=_note, name="overseeing", daemon=True).start()


def begin(**_: Any) -> None:
    """Announce this process from now on. Called once in each process that takes runs.

    In a thread of its own, since Celery kills a process that is silent as it begins.
    """
    _stopped.clear()
    threading.Thread(target=_announce, name="announcing", daemon=True).start()


def end(**_: Any) -> None:
    """Record that this process takes no more runs. A process that is killed falls silent instead."""
    _stopped.set()
    try:
        Worker.objects.stop(engine.worker())
    except Error as error:
        log.warning("worker.not_announced", error=str(error))


def taken() -> list[int]:
    """Return the ids of the plans whose runs this process takes: its own, and those that it upgrades to its own."""
    own, upcast = set(registry.plans()), registry.upcasting_agents()
    older = Plan.objects.filter(agent__in=upcast, external=False).exclude(pk__in=own) if upcast else []
    return sorted(own | {plan.pk for plan in older if registry.way_of(plan)})


def _note() -> None:
    while True:
        time.sleep(EVERY)
        _ran[0] = time.monotonic()


def _announce() -> None:
    _ask_for_doorbells()
    reported, looked = False, time.monotonic()
    while True:
        now = time.monotonic()
        still, paused, looked = now - _ran[0], now - looked > GAP * EVERY, now
        if still <= STILL or paused:
            _beat()
        elif not reported:
            log.error("worker.parent_stands_still", seconds=round(still))
        reported = still > STILL and (reported or not paused)
        if _stopped.wait(EVERY):
            return


def _ask_for_doorbells() -> None:
    """Have due runs rung for at once: a worker that died may have taken their messages before it claimed any."""
    try:
        queues.ring_anew()
    except redis.RedisError as error:
        log.warning("redis.silent", error=str(error))


def _beat() -> None:
    try:
        Worker.objects.beat(engine.worker(), taken())
    except (Error, CheckpointError) as error:
        log.warning("worker.not_announced", error=str(error))
    finally:
        connection.close()  # back to the pool: the next beat is seconds away
