"""Announces a worker process every few seconds in PostgreSQL, which does not depend on Redis.

The process gets its messages from its parent, so it announces itself only while its parent runs: a thread of the parent
notes the time in memory that both share. It is a thread because the parent's own loop stops while Redis is away; a loop
that hangs for another reason is ended by `deaf_workers`.

It also ends a worker that takes no messages although it could, so that another is started in its place.

Such a worker looks alive: it answers, it announces itself, and only its runs do not go on. So a thread of its parent
process checks whether messages wait in its queues while one of its processes is free and none of them has begun
anything. It is a thread because the parent's own loop may be what hangs. It logs this and notes it in Redis, where
/readyz reads it, and ends the worker with exit code 1: its supervisor starts another.
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import redis
import structlog
from celery.worker import state
from django.db import Error, connection

from agents.definition import registry
from agents.models import Worker
from agents.ringing import doorbell
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
        doorbell.ring_anew()
    except redis.RedisError as error:
        log.warning("redis.silent", error=str(error))


def _beat() -> None:
    try:
        Worker.objects.beat(engine.worker(), taken())
    except (Error, CheckpointError) as error:
        log.warning("worker.not_announced", error=str(error))
    finally:
        connection.close()  # back to the pool: the next beat is seconds away


LOOK = 5.0  # seconds
GAP = 3  # times as long between two looks: nobody watched meanwhile
PATIENCE = 60.0  # seconds without a message begun; twice what kombu waits between two tries to reach Redis
GRACE = 30.0  # seconds to end in order, as at any other stop
STAYS = 60  # seconds for which /readyz names the worker that was ended
EXIT_CODE = 1
KEY = "holdpoint.deaf"


@dataclass
class Hearing:
    """The count of messages that a worker began, and the time since which it has begun none although it could."""

    begun: int = 0
    since: float = field(default_factory=time.monotonic)
    looked: float = field(default_factory=time.monotonic)

    def deaf_for(self, begun: int, *, could: bool, now: float) -> float:
        """Return for how many seconds messages waited in vain. `could`: some wait and a process is free.

        After a gap between two looks the count begins anew: this process was paused, and maybe the others with it.
        """
        if begun != self.begun or not could or now - self.looked > GAP * LOOK:
            self.begun, self.since = begun, now
        self.looked = now
        return now - self.since


def watch(sender: Any, **_: Any) -> None:
    """Watch this worker from now on, in a thread of its own. `sender` is Celery's consumer, which is ready."""
    threading.Thread(target=_watch, args=(sender,), name="hearing", daemon=True).start()


def describe_ended_worker() -> str:
    """Return a line about the worker that was ended lately because it took nothing, or "". Raises redis.RedisError."""
    result: Any = doorbell.client().get(KEY)
    return result.decode(errors="replace") if result else ""


def _watch(consumer: Any) -> None:
    hearing, served = Hearing(), list(consumer.app.amqp.queues.consume_from)
    while state.should_stop is None and state.should_terminate is None:
        time.sleep(LOOK)
        waiting = _waiting(served)
        could = waiting > 0 and len(state.active_requests) < consumer.pool.num_processes
        silent = hearing.deaf_for(state.all_total_count[0], could=could, now=time.monotonic())
        if silent >= PATIENCE and state.should_stop is None:
            _end(consumer.hostname, waiting, silent)
            return


def _waiting(served: list[str]) -> int:
    try:
        return sum(doorbell.waiting(served).values())
    except redis.RedisError:
        return 0  # without Redis there is nothing to take


def _end(name: str, waiting: int, silent: float) -> None:
    log.error("worker.deaf", worker=name, waiting=waiting, seconds=round(silent), exit_code=EXIT_CODE)
    try:
        words = f"{name} took nothing for {silent:.0f} s while {waiting} messages waited, and was ended"
        doorbell.client().set(KEY, words, ex=STAYS)
    except redis.RedisError as error:
        log.warning("redis.silent", error=str(error))
    state.should_stop = EXIT_CODE  # type: ignore[assignment]  # which the stub knows as None
    time.sleep(GRACE)
    os._exit(EXIT_CODE)
