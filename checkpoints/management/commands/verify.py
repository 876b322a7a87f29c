from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from checkpoints.audit import database
from checkpoints.audit.verify_runs import verify_all, verify_run
from checkpoints.events import event_proof
from checkpoints.models import Run

SHOWN = 50  # one fault is often followed by one for each later checkpoint


class Command(BaseCommand):
    help = "Check stored checkpoints against their digests: one run's, or everything with the audit's seals."
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", nargs="?", help="a run's number, such as 7 or R-7; all runs and seals if left out")

    def handle(self, *, run: str | None = None, **options: Any) -> None:
        if not event_proof.seal_key():
            self.stdout.write(f"Note: {database.NO_KEY}.")
        problems = verify_all() if run is None else verify_run(self._run(run))
        for problem in problems[:SHOWN]:
            self.stderr.write(str(problem))
        if problems:
            raise CommandError(f"{len(problems)} faults found; the first {min(SHOWN, len(problems))} are shown.")
        self.stdout.write("Everything stored is unaltered.")

    def _run(self, name: str) -> Run:
        number = name.upper().removeprefix("R-")
        found = Run.objects.filter(pk=int(number)).first() if number.isascii() and number.isdigit() else None
        if found is None:
            raise CommandError(f"There is no run {name}.")
        return found
