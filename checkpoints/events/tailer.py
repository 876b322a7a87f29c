"""The tailer: one reader of events per web process. It wakes on a ring, else every second, and delivers new events.

It reacts to the first ring at once and combines those within a few milliseconds: a working run rings more often than
people can notice. A ring may arrive before its event can be read, while an older transaction is still open; the tailer
then reads again after a pause that doubles. A dead Redis costs at most a second's delay, a dead PostgreSQL only the
time that it is dead: the cursor does not move until what was read is delivered.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import structlog
from django.db import InterfaceError, OperationalError, connections
from prometheus_client import Counter, Gauge

from checkpoints.errors import UnfitDatabase
from checkpoints.postgresql import fitness, xid_offset
from checkpoints.postgresql.sql import run_sql

from . import wakeup
from .commit_order import Cursor, newest_cursor, read_after
from .event import Event

PERIOD = 1.0  # seconds between reads without a wake-up
JOINED = 0.02  # seconds between reads, at least
IMPATIENT = 0.01  # the first pause while an event is committed but not yet below the horizon
BATCH = 500

EVENTS = Counter(
    "holdpoint_events",
    "Events that this process has read, by kind and the agent that acted; failed runs and unknown effects by the "
    "run's. Every web process reads all of them.",
    ["kind", "agent"],
)
LAG = Gauge("holdpoint_tailer_lag_seconds", "Seconds since this process last had read every event that could be read.")
OTHERS = "others"  # the label of unknown agents, whose names external programs choose freely
ALERTED = ("run.failed", "effect.unknown")  # counted from 0 under the run's agent, not the actor: alerts name it
_AGENTS = """
SELECT run.id, plan.agent FROM checkpoints_run run JOIN checkpoints_plan plan ON plan.id = run.plan_id
WHERE run.id = ANY($1)
"""
_known: set[str] = set()
Deliver = Callable[[list[Event]], Awaitable[None]]
log = structlog.get_logger(__name__)


def count_by_name(agents: Iterable[str]) -> None:
    """Count the events of these agents under their names from now on, and those of any other under OTHERS."""
    _known.update(agents)
    for agent in (*_known, OTHERS):
        for kind in ALERTED:
            EVENTS.labels(kind, agent)


class Tailer:
    """The reader. Run `await Tailer(deliver).run()` in a task of its own; cancel the task to stop it."""

    def __init__(self, deliver: Deliver, *, start: Cursor | None = None) -> None:
        self.deliver = deliver
        self.cursor = start
        self.started = asyncio.Event()  # it knows from where it reads: whatever happens later is delivered
        self._rung = asyncio.Event()
        self._asked = False  # whether the database was checked: fit, and not restored
        self._caught_up = time.monotonic()
        # One thread, so that the tailer keeps one database connection of its own.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="tailer")

    async def run(self) -> None:
        """Deliver events until cancelled."""
        LAG.set_function(self.lag)
        listener = asyncio.create_task(self._listen())
        loop = asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                pause = await self._read_all()
                # Not wait_for: on Python 3.11 that swallows a cancellation that meets a wake-up; a stop would hang.
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._rung.wait()
                await asyncio.sleep(max(0.0, began + JOINED - loop.time()))
                self._rung.clear()
        finally:
            await end_task(listener)
            self._thread.submit(connections.close_all)
            self._thread.shutdown(wait=False)

    def lag(self) -> float:
        """Return the seconds since all readable events had been read."""
        return time.monotonic() - self._caught_up

    async def _read_all(self) -> float:
        """Deliver all that can be read; return the seconds to pause afterwards."""
        pause = IMPATIENT
        while True:
            try:
                events, more = await asyncio.get_running_loop().run_in_executor(self._thread, self._read)
                self.started.set()
                if events:
                    await self._hand_on(events)
            except UnfitDatabase as error:
                log.critical("database.unfit", error=str(error))
                os.kill(os.getpid(), signal.SIGTERM)
                return PERIOD
            except Exception as error:  # noqa: BLE001 - whatever fails, the next look starts at the same cursor
                log.warning("tailer.cannot_read", error=str(error))
                return PERIOD
            if events:
                pause = IMPATIENT
            if len(events) < BATCH:
                self._caught_up = time.monotonic()
            if not more:
                return PERIOD
            if not events:
                if pause >= PERIOD:
                    return PERIOD
                await asyncio.sleep(pause)
                pause *= 2

    def _read(self) -> tuple[list[Event], bool]:
        """Read the next batch; tell also whether events are committed that may not be read yet.

        Runs on the tailer's thread.
        """
        try:
            if not self._asked:  # at the start, and after PostgreSQL was away
                fitness.refuse()
                xid_offset.refuse_ahead(self.cursor.xid if self.cursor else 0)
                self._asked = True
            if self.cursor is None:
                self.cursor = newest_cursor()
            return read_after(self.cursor, BATCH)
        except Exception:
            self._asked = False
            connections.close_all()
            raise

    async def _hand_on(self, events: list[Event]) -> None:
        """Deliver a batch and move the cursor past it; if the database was away, the next read repeats the batch."""
        try:
            await self.deliver(events)
        except (OperationalError, InterfaceError):
            raise
        except Exception:  # one bad event must not stop all later ones
            log.exception("tailer.cannot_deliver", events=len(events))
        self.cursor = Cursor.from_event(events[-1])
        await self._count(events)

    async def _count(self, events: list[Event]) -> None:
        runs = {event.run_id for event in events if event.kind in ALERTED and event.run_id}
        agents = await asyncio.get_running_loop().run_in_executor(self._thread, _agents, runs) if runs else {}
        for event in events:
            role, _, name = event.actor.partition(":")
            if event.kind in ALERTED:  # its actor is mostly the system or a person
                role, name = "agent", agents.get(event.run_id or 0, OTHERS)
            EVENTS.labels(event.kind, (name if name in _known else OTHERS) if role == "agent" else "").inc()

    async def _listen(self) -> None:
        """Set `_rung` at each wake-up; reconnect whenever the connection is lost."""

        async def rung(_: object) -> None:
            self._rung.set()

        await wakeup.listen(wakeup.channel(), hear=rung, deaf="tailer.deaf")


def _agents(runs: set[int]) -> dict[int, str]:
    """Return the agents of these runs; empty if PostgreSQL does not answer.

    Runs on the tailer's thread.
    """
    try:
        return dict(run_sql(_AGENTS, [list(runs)]))
    except Exception as error:  # noqa: BLE001 - the events are counted all the same; _read meets a lost connection
        log.warning("tailer.cannot_name", error=str(error))
        return {}


async def end_task(task: asyncio.Task[None]) -> None:
    """Cancel `task` until it has ended.

    redis-py sends through `asyncio.wait_for`, which on Python 3.11 swallows a cancellation that coincides with the end
    of the awaited task; cancelled only once, the task would go on.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=0.1)
