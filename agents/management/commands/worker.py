"""`manage.py worker`: runs a Celery worker for the agents that are registered here."""

from __future__ import annotations

import os
from typing import Any

from celery.bin.celery import celery
from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.db import connections

from agents.definition import registry


class Command(BaseCommand):
    """Becomes a Celery worker with the queues of every registered agent version."""

    help = "Starts a Celery worker that serves the queues of the registered agents. Further arguments go to Celery."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Pass `--concurrency` and `--pool` on to Celery."""
        parser.add_argument("--concurrency", "-c", type=int, default=2, help="processes that run agents (2)")
        solo = (
            "with solo, agents run in the process that reports health: a step of more than 30 s fails its health check"
        )
        parser.add_argument(
            "--pool", default="prefork", choices=["prefork", "solo"], help=f"Celery's pool (prefork); {solo}"
        )
        parser.add_argument("--name", default="", help="the worker's name, for two on one machine")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run Celery in this process, so that no other stays in between or loads Django twice.

        The worker refuses a PostgreSQL that is unfit, stores the plans and logs what cannot be served
        (agents.serving.warming); while PostgreSQL is away it waits first.
        """
        queues = registry.queues() or [settings.CELERY_TASK_DEFAULT_QUEUE]
        command = ["-q", "-A", "config.celery", "worker", "--loglevel", "INFO"]
        command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        command += ["-Q", ",".join(queues), "--pool", options["pool"], "-c", str(options["concurrency"])]
        command += ["-n", f"{options['name'] or f'worker-{os.getpid()}'}@%h"]
        connections.close_all()
        celery(command, auto_envvar_prefix="CELERY")
