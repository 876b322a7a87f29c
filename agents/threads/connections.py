"""Connections of a checkpointer's own, lent to whichever thread calls it.

LangGraph saves in threads that last for one invocation. Django gives each thread a connection, so each invocation
would open some. And a checkpoint commits by itself: it must not be part of a transaction that its caller rolls back.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

MOST = 8  # connections that are kept; more calls at once open more, and close them


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
                if kept := len(self._free) < MOST:
                    self._free.append(mine)
            if not kept:
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
