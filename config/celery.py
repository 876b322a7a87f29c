"""The Celery application. It carries doorbells: a message holds a run's id, PostgreSQL decides what there is to do.

So Celery need not be reliable: results are ignored, a message may come late, twice or never. The
housekeeping queue is served by every worker besides its agents' queues; its canary tells /metrics how long ago a
worker took a message, which the process list does not show.
"""

from __future__ import annotations

import gc
import os
from typing import Any

import structlog
from celery import Celery, bootsteps, signals
from celery.concurrency import ALIASES as POOLS  # type: ignore[attr-defined]
from kombu.transport import TRANSPORT_ALIASES

from agents.serving import health_file
from checkpoints import request_ids

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# Django's checks read the code, which `make check` has them do once for a release; at each start they take a second.
os.environ.setdefault("CELERY_SKIP_CHECKS", "1")

# The name of a transport is the scheme of a broker's URL, and Celery has no setting for another class of it, nor of a
# pool.
POOLS["threads"] = "config.messages:ThreadPool"
TRANSPORT_ALIASES |= dict.fromkeys(("redis", "rediss"), "config.messages:Transport")
log = structlog.get_logger(__name__)
app = Celery("holdpoint")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(["config"], related_name="housekeeping")


@signals.setup_logging.connect
def keep_djangos_logging(**_: Any) -> None:
    """Do nothing: a receiver alone keeps Celery from setting up its own logging."""


class HealthFile(bootsteps.StartStopStep):
    """Touches the health file in the loop in which a worker reads its queues: without Redis that loop stops."""

    requires = ("celery.worker.components:Timer",)

    def start(self, worker: Any) -> None:
        """Touch the file from now on."""
        worker.timer.call_repeatedly(health_file.EVERY, health_file.touch)


app.steps["worker"].add(HealthFile)


@signals.beat_init.connect
def tell_of_beat(**_: Any) -> None:
    """Let beat touch its file whenever Redis took a message of it, and log that it has started.

    The canary is a message every five seconds: Celery's own lines, about each that is sent, would come as often.
    """
    signals.after_task_publish.connect(lambda **_: health_file.touch(), weak=False)
    log.info("beat.ready")


@signals.celeryd_after_setup.connect
def serve_housekeeping(instance: Any, **_: Any) -> None:
    """Let every worker serve the housekeeping queue too."""
    instance.app.amqp.queues.select_add(instance.app.conf.task_default_queue)


@signals.worker_before_create_process.connect
def freeze(**_: Any) -> None:
    """Exempt what is loaded from garbage collections: one would give each process a copy of its own of all of it."""
    gc.collect()
    gc.freeze()


@signals.task_prerun.connect
def bind_request(task_id: str, **_: Any) -> None:
    """Bind the id of the request that rang for a task to its log lines."""
    structlog.contextvars.unbind_contextvars("request_id")
    if request_id := request_ids.of_message(task_id):
        structlog.contextvars.bind_contextvars(request_id=request_id)
