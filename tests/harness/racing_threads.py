"""Threads that start at one moment, or that meet a lock, each with a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection, transaction

from tests.harness.waiting import PATIENCE, until


def race(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each call returned, or the exception that it raised, in the order of `calls`."""
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        start.wait(timeout=PATIENCE)
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - the exception is what the caller looks at
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def blocked() -> int:
    """How many other connections of this database wait for a lock."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # a transaction would see them as at its first look
        cursor.execute(
            """SELECT count(*) FROM pg_stat_activity
            WHERE wait_event_type = 'Lock' AND datname = current_database() AND pid <> pg_backend_pid()"""
        )
        (count,) = cursor.fetchone()
        return int(count)


def meet_lock(held: Callable[[], Any], late: Callable[[], Any], then: Callable[[], Any] | None = None) -> Any:
    """What `late` gave, or raised, when it ran into rows that `held` had written and not committed yet.

    `late` starts in a transaction that sees the rows as they were, and goes on when `held` is committed; or it
    is over before, where it takes no lock. `then` writes more while `late` waits.
    """

    def run() -> Any:
        try:
            return late()
        except Exception as error:  # noqa: BLE001 - the exception is what the caller looks at
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            held()
            running = pool.submit(run)
            until(lambda: running.done() or blocked())
            if then is not None:
                then()
        return running.result(timeout=PATIENCE)
