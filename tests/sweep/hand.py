"""A warm process that forks another for each line of JSON: a worker's turn, or a person's rewind or edit.

The child may be made to crash (`wish`, see checkpoints.crash_points); the answer says how it ended and what points it
passed. This process itself has no connection open, so that its children inherit none.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import django


def do(asked: dict[str, Any]) -> None:
    """One turn of a worker, or one act of a person."""
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
    acts: dict[str, Callable[..., Any]] = {"rewind": rewind.rewind, "edit": rewind.edit, "settle": rewind.settle_now}
    acts[asked["do"]](run, by=by, **asked["how"])


def forked(asked: dict[str, Any], passed: Path) -> int:
    """Do it in a process of its own; its exit status, minus a signal's number."""
    pid = os.fork()
    if pid == 0:
        from checkpoints import crash_points

        os.environ["HOLDPOINT_CRASH"] = asked.get("wish", "")
        code = 1
        try:
            with passed.open("a") as file:
                crash_points.listen(lambda point, *_: print(point, file=file, flush=True))
                do(asked)
            code = 0
        except (crash_points.Crashed, Exception):  # noqa: BLE001 - what a process does that nobody catches for
            if asked.get("loud"):
                traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def serve() -> None:
    """Do one line after the other, until there are no more."""
    from django.db import connections

    from agents.definition import registry
    from agents.drill import stand_in
    from agents.ringing import doorbell

    for known in registry.agents().values():
        stand_in.warm(known)
    registry.plans()
    for each in connections.all():
        each.close()
        if hasattr(each, "close_pool"):
            each.close_pool()
    doorbell.silence()
    with tempfile.TemporaryDirectory() as folder:
        passed = Path(folder) / "passed"
        for line in sys.stdin:
            passed.write_text("")
            code = forked(json.loads(line), passed)
            print(json.dumps({"code": code, "passed": passed.read_text().split()}), flush=True)  # noqa: T201


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    serve()
