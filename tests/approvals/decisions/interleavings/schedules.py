"""Two moves at once, in an order that is chosen: the first stops before a statement while the second is made.

Each has a thread and a connection of its own. All that psycopg sends passes `Connection.wait`, whoever sends it: a
cursor of Django's, `run_sql`, and the COMMIT or ROLLBACK of a transaction. There a move stops.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple
from unittest import mock

import psycopg
from django.db import connections

from checkpoints.postgresql.sql import run_sql
from tests.harness.waiting import PATIENCE, PAUSE

Move = Callable[[], Any]
thread = threading.local()


class Stop:  # before a move's statement of this number, from 1
    def __init__(self, number: int) -> None:
        self.left, self.before = number, ""
        self.reached, self.over = threading.Event(), threading.Event()

    def pass_by(self, sent: Any) -> None:
        self.left -= sent.__name__ != "_set_autocommit_gen"  # which sends nothing
        if not (self.left or self.before):
            self.before = " ".join(str(sent.gi_frame.f_locals.get("query", sent.__name__)).split())[:90]
            self.reached.set()
            assert self.over.wait(PATIENCE)


class Pair(NamedTuple):
    """Two threads, each with a connection."""

    threads: list[ThreadPoolExecutor]
    pids: list[int]  # of their connections' servers

    def run(self, first: Move, second: Move, *, stop: int) -> tuple[list[Any], str, bool]:
        """Make the first move up to its statement of this number, the second as far as it gets, and both to the end.

        Returns results or exceptions, that statement ("": the first was over before), and whether the second waited.
        """
        at = Stop(stop)
        leading = self.threads[0].submit(attempt, first, at)
        leading.add_done_callback(lambda _: at.reached.set())
        try:
            assert at.reached.wait(PATIENCE), "the first move hangs by itself"
            following = self.threads[1].submit(attempt, second)
            blocked = self._comes_to_wait(following)
        finally:
            at.over.set()
        return [leading.result(PATIENCE), following.result(PATIENCE)], at.before, blocked

    def _comes_to_wait(self, following: Future[Any]) -> bool:
        """Return once the second move is over, or waits for a lock of the first; tell whether it waits."""
        until = time.monotonic() + PATIENCE
        while not wait([following], timeout=PAUSE).done:
            if (self.pids[0],) in run_sql("SELECT unnest(pg_blocking_pids($1::int))", [self.pids[1]]):
                return True
            assert time.monotonic() < until, "the second move waits for something else"
        return False


@contextmanager
def open_pair() -> Iterator[Pair]:
    send = psycopg.Connection.wait

    def stopping(raw: Any, sent: Any, *args: Any, **options: Any) -> Any:
        if stop := getattr(thread, "stop", None):
            stop.pass_by(sent)
        return send(raw, sent, *args, **options)

    with ExitStack() as closing:
        threads = [closing.enter_context(ThreadPoolExecutor(1)) for _ in range(2)]
        for each in threads:
            closing.callback(each.submit, connections.close_all)
        closing.enter_context(mock.patch.object(psycopg.Connection, "wait", stopping))
        yield Pair(threads, [each.submit(run_sql, "SELECT pg_backend_pid()", []).result()[0][0] for each in threads])


def attempt(move: Move, stop: Stop | None = None) -> Any:
    thread.stop = stop
    try:
        return move()
    except Exception as error:  # noqa: BLE001 - the exception is what the caller looks at
        return error
    finally:
        thread.stop = None
