"""`manage.py worker`: runs a Celery worker for the agents that are registered here."""

from __future__ import annotations

import os
from typing import Any

from celery.bin.celery import celery
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import connections

from agents.definition import registry


class Command(BaseCommand):
    """Becomes a Celery worker with the queues of every registered agent version."""

    help = "Starts a Celery worker that serves the queues of the registered agents. Further arguments go to Celery."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Pass `--concurrency` and `--pool` on to Celery."""
        parser.add_argument("--concurrency", "-c", type=int, default=2, help="runs that are at work at once (2)")
        pools = (
            "prefork (the default): a process for each run at work; threads: all in one process, for steps that "
            "mostly wait; solo: one run, in the process that reports health: a step of more than 30 s fails its "
            "health check. docs/run.md says which to choose"
        )
        parser.add_argument("--pool", "-P", default="prefork", choices=["prefork", "threads", "solo"], help=pools)
        parser.add_argument(
            "--queue", action="append", default=[], metavar="NAME",
            help="serve only agents that say this queue (default: all agents); may be given several times",
        )  # fmt: skip
        parser.add_argument("--name", default="", help="the worker's name, for two on one machine")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run Celery in this process, so that no other stays in between or loads Django twice.

        The worker refuses a PostgreSQL that is unfit, stores the plans and logs what cannot be served
        (agents.serving.worker_start); while PostgreSQL is away it waits first.
        """
        served = {agent.agent.queue for agent in registry.agents().values()}
        if unknown := set(options["queue"]) - served:
            known = ", ".join(sorted(served)) or "none"
            raise CommandError(f"No agent here says the queue {', '.join(sorted(unknown))}; known: {known}.")
        registry.serve_only(options["queue"])
        queues = registry.queues() or [settings.CELERY_TASK_DEFAULT_QUEUE]
        command = ["-q", "-A", "config.celery", "worker", "--loglevel", "INFO"]
        command += ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        command += ["-Q", ",".join(queues), "--pool", options["pool"], "-c", str(options["concurrency"])]
        command += ["-n", f"{options['name'] or f'worker-{os.getpid()}'}@%h"]
        connections.close_all()
        celery(command, auto_envvar_prefix="CELERY")
