"""Runs checks with a time limit.

A server that hangs, or whose host is gone, keeps its clients waiting, and a balancer asks every second. So each check
runs in a thread of its own, one at a time: another caller meanwhile waits for the same answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Lock, Thread
from typing import Generic, TypeVar

from django.db import connections

Answer = TypeVar("Answer")


class BoundedChecks(Generic[Answer]):
    """The running checks of one process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._under_way: dict[str, Future[Answer]] = {}

    def ask(self, checks: Mapping[str, Callable[[], Answer]], *, within: float, late: Answer) -> dict[str, Answer]:
        """Return each check's answer, or `late` after `within` seconds without one. Raises what a check raises."""
        until = time.monotonic() + within
        asked = {name: self._asked(name, check) for name, check in checks.items()}
        answers = {}
        for name, answer in asked.items():
            try:
                answers[name] = answer.result(max(0.0, until - time.monotonic()))
            except TimeoutError:
                answers[name] = late
        return answers

    def _asked(self, name: str, check: Callable[[], Answer]) -> Future[Answer]:
        """Return the answer of a check that runs already, or start it."""
        with self._lock:
            answer = self._under_way.get(name)
            if answer is None or answer.done():
                answer = self._under_way[name] = Future()
                # A daemon: a process that is asked to end does not wait for a server that hangs.
                Thread(target=_run, args=(check, answer), name=f"asks-{name}", daemon=True).start()
        return answer


def _run(check: Callable[[], Answer], answer: Future[Answer]) -> None:
    try:
        result = check()
    except BaseException as error:  # noqa: BLE001 - raised where it is asked for
        answer.set_exception(error)
    else:
        answer.set_result(result)
    finally:
        connections.close_all()  # back to the pool
