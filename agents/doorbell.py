"""Ringing: a Celery message that carries a run's id and no authority.

A broker that is down never fails what was just committed: it is logged, and the sweeper rings again.
"""

from __future__ import annotations

from typing import Any

import structlog
from kombu.exceptions import OperationalError

log = structlog.get_logger()


def ring(run_id: int, queue: str) -> bool:
    """Ask a worker to look at the run; says whether the broker took the message."""
    from .tasks import advance

    try:
        advance.apply_async(args=(run_id,), queue=queue, retry=False, ignore_result=True)
    except (OperationalError, OSError) as error:
        log.warning("doorbell.lost", run=run_id, queue=queue, error=str(error))
        return False
    return True


def on_attention(sender: Any, run_id: int, queue: str = "", **_: Any) -> None:
    """The receiver of checkpoints' one signal, sent after commit."""
    ring(run_id, queue or queue_of_run(run_id))


def queue_of_run(run_id: int) -> str:
    """The queue of the run's agent version."""
    from checkpoints.models import Run

    from .registry import queue_of

    agent, version = Run.objects.values_list("plan__agent", "plan__version").get(pk=run_id)
    return queue_of(agent, version)
