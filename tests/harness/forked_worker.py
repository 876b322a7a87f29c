"""Workers of one message each: for a line "RUN CRASH" a forked process takes the run as far as it goes.

Says how each process ended, by its exit status (minus the signal's number). This process itself never opens a
connection, so that its children inherit none.
"""

from __future__ import annotations

import os
import sys

import django


def take(wanted: str, wish: str) -> int:
    """Take the run on, or for "question:7" answer that question, in a process of its own; its exit status."""
    pid = os.fork()
    if pid == 0:
        from agents.questions import answering
        from agents.runner import engine

        os.environ["HOLDPOINT_CRASH"] = wish
        kind, _, number = wanted.rpartition(":")
        (answering.answer if kind else engine.advance)(int(number))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def serve() -> None:
    """Take one run after the other, until there are no more lines."""
    from agents import tasks
    from agents.definition import registry
    from agents.drill import children

    assert tasks.advance.name in tasks.advance.app.tasks
    for known in registry.agents().values():
        children.warm(known)
    for line in sys.stdin:
        run_id, _, wish = line.strip().partition(" ")
        print(take(run_id, wish), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    serve()
