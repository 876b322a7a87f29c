"""A warm process that forks workers: each line of JSON is a worker's turn, or a person's rewind or edit.

A worker may be made to crash (`wish`, see checkpoints.crash_points), and does all that is asked with one wish until it
has; the answer says what points it passed. This process itself has no connection open, so that no worker inherits one.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import django

from checkpoints import crash_points


def do(asked: dict[str, Any]) -> None:
    from django.contrib.auth.models import User

    from agents.moves import rewind
    from agents.runner import engine
    from approvals.policy import pacing
    from checkpoints.models import Run

    if asked["do"] == "advance":
        with pacing.unpaced():
            engine.advance(asked["run"])
        return
    run, by = Run.objects.get(pk=asked["run"]), User.objects.get(pk=asked["by"])
    act: Callable[..., Any] = rewind.rewind if asked["do"] == "rewind" else rewind.edit
    act(run, by=by, **asked["how"])


class Worker:
    """A forked process that does one thing after the other, until one of them crashes it."""

    def __init__(self, wish: str, passed: Path) -> None:
        self.wish = wish
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            work(theirs.makefile("rw"), wish, passed)
        theirs.close()
        self.orders = ours.makefile("rw")
        ours.close()

    def do(self, line: str) -> bool:
        self.orders.write(line)
        self.orders.flush()
        return bool(self.orders.readline())

    def end(self) -> None:
        self.orders.close()
        os.waitpid(self.pid, 0)


def work(orders: TextIO, wish: str, passed: Path) -> None:
    os.environ["HOLDPOINT_CRASH"] = wish
    try:
        # What a process does that nobody catches for.
        with suppress(crash_points.Crashed, Exception), passed.open("a") as file:
            crash_points.listen(lambda point, *_: print(point, file=file, flush=True))
            for line in orders:
                do(json.loads(line))
                print("done", file=orders, flush=True)
    finally:
        os._exit(0)


def serve() -> None:
    """Do one line after the other, until there are no more; lines of one wish in one process, as long as it lives."""
    from django.db import connections

    from agents.definition import registry
    from agents.drill import children
    from agents.ringing import doorbell

    for known in registry.agents().values():
        children.warm(known)
    registry.plans()
    for each in connections.all():
        each.close()
        if hasattr(each, "close_pool"):
            each.close_pool()
    doorbell.silence()
    worker = None
    with tempfile.TemporaryDirectory() as folder:
        passed = Path(folder) / "passed"
        for line in sys.stdin:
            passed.write_text("")
            wish = json.loads(line)["wish"]
            if worker is not None and worker.wish != wish:
                worker.end()
                worker = None
            worker = worker or Worker(wish, passed)
            if not worker.do(line):
                worker.end()
                worker = None
            print(json.dumps({"passed": passed.read_text().split()}), flush=True)  # noqa: T201
        if worker is not None:
            worker.end()


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    serve()
