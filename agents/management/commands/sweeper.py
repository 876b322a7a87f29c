"""`manage.py sweeper`: runs the process that finds work left over by a crash, a flush of Redis or a timer."""

from __future__ import annotations

import signal
from typing import Any

import structlog
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.serving import sweeper
from checkpoints.errors import UnfitDatabase

log = structlog.get_logger()


class Command(BaseCommand):
    """Sweeps every second until told to stop."""

    help = "Wakes runs that are due and timers, expires gates, seals the audit. Several may run at once."
    requires_system_checks = []
    stopping = False

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare `--once`, for a single pass."""
        parser.add_argument("--once", action="store_true", help="make one pass, then end")

    def handle(self, *args: Any, **options: Any) -> None:
        """Sweep. Raises CommandError where this PostgreSQL is unfit."""
        try:
            if options["once"]:
                self.stdout.write(str(sweeper.Sweeper().sweep_once()))
                return
            signal.signal(signal.SIGTERM, self.stop)
            signal.signal(signal.SIGINT, self.stop)
            log.info("sweeper.ready")
            sweeper.run_for_ever(lambda: self.stopping)
        except UnfitDatabase as unfit:
            raise CommandError(str(unfit)) from None

    def stop(self, *_: Any) -> None:
        """End after this pass."""
        self.stopping = True
