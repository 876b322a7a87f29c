"""`manage.py cancel RUN…`: cancels runs."""

from __future__ import annotations

import re
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.models import Effect
from agents.moves import cancel
from checkpoints import actors
from checkpoints.actors import Actor
from checkpoints.models import Run

STAY = (Effect.Status.DONE, Effect.Status.KEPT, Effect.Status.UNKNOWN)
NUMBER = re.compile(r"(?:[Rr]-)?([0-9]{1,18})")


class Command(BaseCommand):
    """Cancels each run, or says why not. Exit code 1 where one is not a run or had ended before."""

    help = (
        "Cancels runs: withdraws their open gates, and first undoes the effects that they left behind if their code "
        "is here. Other effects stay done. Needs none of the agent's code."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the runs, who cancels them, and why; see --help."""
        parser.add_argument("runs", metavar="RUN", nargs="+", help="a run's number, as 7 or R-7")
        parser.add_argument("--reason", default="", help="the reason, kept with the run")
        parser.add_argument(
            "--as", dest="user", default="", help="the username of the person who cancels them (default: the system)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Cancel the runs; look them all up first, so that nothing is cancelled where one of them is a mistake."""
        by = _actor(options["user"])
        runs = [_run(run) for run in options["runs"]]
        ended = [run for run in runs if not self.cancel(run, by, options["reason"].strip())]
        if ended:
            raise CommandError(" ".join(f"{run} had already ended: it is {run.status}." for run in ended))

    def cancel(self, run: Run, by: Actor, reason: str) -> bool:
        """Cancel one run and print its status; False where it had ended."""
        if not cancel.cancel(run, by=by, reason=reason):
            return False
        run.refresh_from_db()
        if run.ending:
            self.stdout.write(f"{run} is cancelled once a worker has undone what it left behind.")
            return True
        self.stdout.write(f"{run} is cancelled.")
        stays = Effect.objects.filter(run=run, undoes__isnull=True, status__in=STAY).order_by("pk")
        if names := ", ".join(dict.fromkeys(stays.values_list("step", flat=True))):
            self.stdout.write(f"Not undone: {names}.")
        return True


def _run(text: str) -> Run:
    found = NUMBER.fullmatch(text)
    if found is None:
        raise CommandError(f"{text} is not a run; give its number, such as 7 or R-7. Nothing was cancelled.")
    run = Run.objects.select_related("plan").filter(pk=found[1]).first()
    if run is None:
        raise CommandError(f"There is no run R-{found[1]}. Nothing was cancelled.")
    return run


def _actor(username: str) -> Actor:
    user = User.objects.filter(username=username).first()
    if username and user is None:
        raise CommandError(f"There is no user named {username}. Nothing was cancelled.")
    return actors.of_user(user) if user else actors.SYSTEM
