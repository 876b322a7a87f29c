"""Threads that start at one moment, each with a connection of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from django.db import connection


def race(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """What each call returned, or the exception that it raised, in the order of `calls`."""
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        start.wait(timeout=20)
        try:
            return call()
        except Exception as error:  # noqa: BLE001 - the exception is what the caller looks at
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))
