"""Pending writes that wait for the put after them, so that a superstep of a graph is one statement and one commit.

LangGraph hands a task's writes over in the background, and puts the next checkpoint a moment later unless another task
is still running. The put takes them along. If none comes within SOON, a thread of their own keeps them: another task of
the superstep may run for hours, and must not take them along when it dies. A process that dies within SOON loses what
it would have lost by dying a moment earlier, before the task was done: the task runs again, as after LangGraph's own
savers, since no task waits until another one's writes are kept.

Whoever reads in this process has them kept first, and so has an end of the process that is not a kill. No checkpoint is
put before the writes that led to it: a DeltaChannel is rebuilt from them.

They are kept on connections of the checkpointer's own, which are lent to whichever thread calls it: LangGraph saves in
threads that last for one invocation, Django gives each thread a connection, so each invocation would open some. And a
checkpoint commits by itself: it must not be part of a transaction that its caller rolls back.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple
from uuid import UUID

import structlog
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from . import pending
from .pending import Numbered, WritesRow

IDLE = 8  # connections that stay open between calls; more calls at once open more, and close them
SOON = 0.005  # seconds
AGAIN = 1.0  # seconds until writes that could not be kept are tried again
MOST = 8  # tasks whose writes one put takes along: one prepared statement each
_NEVER = float("inf")


class Connections:
    """Connections to lend."""

    def __init__(self) -> None:
        self._free: list[BaseDatabaseWrapper] = []
        self._guard = threading.Lock()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Make one of these connections the calling thread's default one, inside."""
        with self._guard:
            mine = self._free.pop() if self._free else None
        mine = mine or _opened()
        before = connections[DEFAULT_DB_ALIAS]
        connections[DEFAULT_DB_ALIAS] = mine
        try:
            if mine.errors_occurred:
                mine.close_if_unusable_or_obsolete()
            yield
        finally:
            connections[DEFAULT_DB_ALIAS] = before
            with self._guard:
                if stays := len(self._free) < IDLE:
                    self._free.append(mine)
            if not stays:
                mine.close()

    def close(self) -> None:
        """Close those that are not lent."""
        with self._guard:
            free, self._free = self._free, []
        for connection in free:
            connection.close()


def _opened() -> BaseDatabaseWrapper:
    made = connections.create_connection(DEFAULT_DB_ALIAS)
    made.inc_thread_sharing()
    # Not one of the process's pool, which is as large as its own threads need; and one that stays open between calls.
    options = {name: value for name, value in made.settings_dict["OPTIONS"].items() if name != "pool"}
    made.settings_dict = {**made.settings_dict, "OPTIONS": options, "CONN_MAX_AGE": None}
    return made


log = structlog.get_logger()


class Handed(NamedTuple):
    """A task's writes, whose connections keep them, and when."""

    row: WritesRow
    connections: Connections
    due: float


_waiting: dict[int, list[Handed]] = {}  # by run
_come = threading.Condition()
_keeping = threading.Lock()  # held while writes are neither waiting nor kept
_being_kept: set[int] = set()  # the runs whose writes these are
_looks_at = _NEVER  # when the thread looks next
_thread: threading.Thread | None = None


def hand_over(
    connections: Connections, run_id: int, checkpoint: UUID, task: str, path: str, writes: Sequence[Numbered]
) -> None:
    """Take a task's ordinary writes over. Raises ValueRefused."""
    global _looks_at, _thread
    handed = Handed(pending.row_of(run_id, checkpoint, task, path, writes), connections, time.monotonic() + SOON)
    with _come:
        _waiting.setdefault(run_id, []).append(handed)
        if _thread is None or not _thread.is_alive():  # also in a process that was forked
            _thread = threading.Thread(target=_keep_in_time, name="pending writes", daemon=True)
            _thread.start()
        if handed.due < _looks_at:
            _looks_at = handed.due
            _come.notify()


@contextmanager
def taken_along(run_id: int) -> Iterator[list[WritesRow]]:
    """Give a run's writes that wait, to be kept inside; they wait again if that is refused or fails.

    Too many for one put, and those that another thread is keeping, are kept before.
    """
    while True:
        with _come:
            if run_id not in _being_kept and len(_waiting.get(run_id, ())) <= MOST:
                along = _waiting.pop(run_id, [])
                break
        keep_all()
    try:
        yield [entry.row for entry in along]
    except BaseException:
        _wait_again(along)
        raise


def keep_all() -> None:
    """Keep everything that waits, or is being kept by another thread."""
    if _waiting or _keeping.locked():
        _keep(_NEVER)


def _keep(until: float) -> None:
    with _keeping:
        with _come:
            found = [entry for run in _waiting.values() for entry in run if entry.due <= until]
            _being_kept.update(entry.row.run_id for entry in found)
            for run_id in _being_kept:
                if left := [entry for entry in _waiting.pop(run_id) if entry.due > until]:
                    _waiting[run_id] = left
        try:
            while found:  # in their order: of a task that writes twice the first counts
                with found[0].connections.lent():
                    pending.add_task(found[0].row)
                del found[0]
        finally:
            _wait_again([entry._replace(due=time.monotonic() + AGAIN) for entry in found])
            _being_kept.clear()


def _wait_again(handed: Sequence[Handed]) -> None:
    global _looks_at
    with _come:
        for entry in reversed(handed):
            _waiting.setdefault(entry.row.run_id, []).insert(0, entry)
            if entry.due < _looks_at:
                _looks_at = entry.due
                _come.notify()


def _keep_in_time() -> None:
    global _looks_at
    while True:
        with _come:
            while (left := _looks_at - time.monotonic()) > 0:
                _come.wait(min(left, threading.TIMEOUT_MAX))
            now = time.monotonic()
            _looks_at = min(
                (entry.due for run in _waiting.values() for entry in run if entry.due > now), default=_NEVER
            )
        try:
            _keep(now)
        except Exception:  # they wait again
            log.exception("writes_not_kept")


atexit.register(keep_all)
