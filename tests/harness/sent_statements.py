"""Every statement that a piece of work sends, those past the ORM and the savepoints included."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import psycopg


@contextmanager
def sent() -> Iterator[list[str]]:
    """The statements that are sent inside, in order, but for a heartbeat, which comes with the clock.

    BEGIN and COMMIT are psycopg's own and not among them.
    """
    told: list[str] = []
    execute = psycopg.Cursor.execute

    def telling(cursor: Any, query: Any, *args: Any, **options: Any) -> Any:
        if threading.current_thread().name != "heartbeat":
            told.append(query.decode() if isinstance(query, bytes) else str(query))
        return execute(cursor, query, *args, **options)

    with mock.patch.object(psycopg.Cursor, "execute", telling):
        yield told
