"""Ends a worker that takes no messages although it could, so that another is started in its place.

Such a worker looks alive: it answers, it announces itself, and only its runs do not go on. So a thread of its parent
process checks whether messages wait in its queues while one of its processes is free and none of them has begun
anything. It is a thread because the parent's own loop may be what hangs. It logs this and notes it in Redis, where
/readyz reads it, and ends the worker with exit code 1: its supervisor starts another.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import redis
import structlog
from celery.worker import state

from agents.ringing import queues

LOOK = 5.0  # seconds
GAP = 3  # times as long between two looks: nobody watched meanwhile
PATIENCE = 60.0  # seconds without a message begun; twice what kombu waits between two tries to reach Redis
GRACE = 30.0  # seconds to end in order, as at any other stop
STAYS = 60  # seconds for which /readyz names the worker that was ended
EXIT_CODE = 1
KEY = "holdpoint.deaf"
log = structlog.get_logger()


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
    result: Any = queues.client().get(KEY)
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
        return sum(queues.waiting(served).values())
    except redis.RedisError:
        return 0  # without Redis there is nothing to take


def _end(name: str, waiting: int, silent: float) -> None:
    log.error("worker.deaf", worker=name, waiting=waiting, seconds=round(silent), exit_code=EXIT_CODE)
    try:
        words = f"{name} took nothing for {silent:.0f} s while {waiting} messages waited, and was ended"
        queues.client().set(KEY, words, ex=STAYS)
    except redis.RedisError as error:
        log.warning("redis.silent", error=str(error))
    state.should_stop = EXIT_CODE  # type: ignore[assignment]  # which the stub knows as None
    time.sleep(GRACE)
    os._exit(EXIT_CODE)
