"""Workers of one message each: for a line "AGENTS RUN CRASH" a forked process takes the run as far as it goes.

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
    from django.conf import settings

    from agents import tasks
    from agents.definition import registry
    from agents.drill import children

    assert tasks.advance.name in tasks.advance.app.tasks
    for line in sys.stdin:
        agents, run_id, wish = line.removesuffix("\n").split(" ", 2)
        if [agents] != settings.HOLDPOINT_AGENTS:
            settings.HOLDPOINT_AGENTS, os.environ["HOLDPOINT_AGENTS"] = [agents], agents
            registry.forget()
            children.warm(*registry.agents().values())
        print(take(run_id, wish), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    serve()
