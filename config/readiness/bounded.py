"""Checks that answer in time, whatever they wait for.

A server that hangs, or whose host is gone, keeps whoever asks it waiting, and a balancer asks every second. So each
check runs in a thread of its own, of which there is one at a time: who asks meanwhile waits for the same answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from threading import Lock, Thread

from django.db import connections

Check = Callable[[], str]  # what is wrong, or ""


class BoundedChecks:
    """The checks of one process that are under way."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._under_way: dict[str, Future[str]] = {}

    def ask(self, checks: Mapping[str, Check], *, within: float) -> dict[str, str]:
        """Return each check's answer; of one that has none after `within` seconds, that. Raises what a check raises."""
        until = time.monotonic() + within
        asked = {name: self._asked(name, check) for name, check in checks.items()}
        answers = {}
        for name, answer in asked.items():
            try:
                answers[name] = answer.result(max(0.0, until - time.monotonic()))
            except TimeoutError:
                answers[name] = f"no answer within {within:g} s"
        return answers

    def _asked(self, name: str, check: Check) -> Future[str]:
        """Return the answer that is under way, or begin to ask."""
        with self._lock:
            answer = self._under_way.get(name)
            if answer is None or answer.done():
                answer = self._under_way[name] = Future()
                # A daemon: a process that is asked to end does not wait for a server that hangs.
                Thread(target=_run, args=(check, answer), name=f"readiness-{name}", daemon=True).start()
        return answer


def _run(check: Check, answer: Future[str]) -> None:
    try:
        said = check()
    except BaseException as error:  # noqa: BLE001 - raised where it is asked for
        answer.set_exception(error)
    else:
        answer.set_result(said)
    finally:
        connections.close_all()  # back to the pool
