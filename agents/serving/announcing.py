"""A worker process says every few seconds that it is there, in PostgreSQL: whether Redis answers is another matter."""

from __future__ import annotations

import threading

import structlog
from django.db import Error, connection

from checkpoints.errors import CheckpointError
from checkpoints.models import Plan

from .. import registry, runner
from ..errors import AgentError
from ..models import Worker

EVERY = 5.0  # seconds
log = structlog.get_logger()
_stopped = threading.Event()


def begin() -> None:
    """Announce this process from now on, in a thread of its own, which alone waits for PostgreSQL.

    Called once in each process that takes runs.
    """
    _stopped.clear()
    threading.Thread(target=_announce, name="announcing", daemon=True).start()


def end() -> None:
    """Say that this process takes nothing more. A process that is killed falls silent instead."""
    _stopped.set()
    try:
        Worker.objects.stop(runner.worker())
    except Error as error:
        log.warning("worker.not_announced", error=str(error))


def taken() -> list[int]:
    """The ids of the plans of which this process takes runs: its own, and those that it brings up to one of its own."""
    own, upcast = set(registry.plans()), registry.upcasting_agents()
    older = Plan.objects.filter(agent__in=upcast, external=False).exclude(pk__in=own) if upcast else []
    return sorted(own | {plan.pk for plan in older if _way(plan)})


def _way(plan: Plan) -> bool:
    try:
        return registry.way_of(plan) is not None
    except AgentError:
        return False


def _announce() -> None:
    _beat()
    while not _stopped.wait(EVERY):
        _beat()


def _beat() -> None:
    try:
        Worker.objects.beat(runner.worker(), taken())
    except (Error, CheckpointError, AgentError) as error:
        log.warning("worker.not_announced", error=str(error))
    finally:
        connection.close()  # back to the pool: the next beat is seconds away
