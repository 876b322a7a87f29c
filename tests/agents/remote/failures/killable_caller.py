"""A warm process that forks another for each line of JSON: one request, or sweep, in which it may be killed.

It is killed before a statement that may write, or before or after a commit: `at` says which, `kill` the number of it.
This process itself has no connection open, so that its children inherit none.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import django


class Counter:
    """Kills the process at the moment of that kind and number."""

    def __init__(self, at: str, kill: int) -> None:
        self.at, self.kill = at, kill
        self.passed = 0

    def moment(self, at: str) -> None:
        """One more."""
        self.passed += at == self.at
        if at == self.at and self.passed == self.kill:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """Count what psycopg sends from now on."""
        import psycopg

        execute, commit = psycopg.Cursor.execute, psycopg.Connection.commit

        def executing(cursor: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
            if not str(query.decode() if isinstance(query, bytes) else query).lstrip().startswith("SELECT"):
                self.moment("statement")
            return execute(cursor, query, *args, **kwargs)

        def committing(*args: Any, **kwargs: Any) -> None:
            self.moment("commit")
            commit(*args, **kwargs)
            self.moment("commit")

        psycopg.Cursor.execute = executing  # type: ignore[assignment, method-assign]
        psycopg.Connection.commit = committing  # type: ignore[method-assign]


def call(asked: dict[str, Any]) -> int:
    """POST what is asked, the answer's status; or sweep the run that is named, as the sweeper does."""
    from django.test import Client

    from agents.remote import absent_programs

    counter = Counter(asked["at"], asked["kill"])
    counter.watch()
    if "sweep" in asked:
        return int(absent_programs.go_on(asked["sweep"]))
    client = Client(headers=asked["headers"], SERVER_NAME="localhost")
    status: int = client.post(asked["address"], asked["body"], content_type="application/json").status_code
    return status


def forked(asked: dict[str, Any], do: Callable[[dict[str, Any]], int]) -> dict[str, int]:
    """Do it in a process of its own: the signal by which it ended, or the status that it was answered."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(theirs, str(do(asked)).encode())
        os._exit(0)
    os.close(theirs)
    ended = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with os.fdopen(ours, "rb") as said:
        return {"ended": ended, "status": int(said.read() or b"0")}


def serve() -> None:
    """Do one line after the other, until there are no more."""
    from django.db import connections
    from django.test import Client
    from django.urls import get_resolver

    from agents.definition import registry
    from agents.moves import rewind
    from agents.ringing import doorbell

    rewind.HALT_SECONDS = 0.0  # no program lets go of its run while a call waits for it
    registry.plans()
    assert get_resolver().url_patterns
    Client(SERVER_NAME="localhost").get("/api/openapi.json")  # so that the children need not import and make all that
    for each in connections.all():
        each.close()
        if hasattr(each, "close_pool"):
            each.close_pool()
    doorbell.silence()
    for line in sys.stdin:
        print(json.dumps(forked(json.loads(line), call)), flush=True)  # noqa: T201


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    serve()
