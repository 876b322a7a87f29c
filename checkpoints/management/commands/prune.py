from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.template.defaultfilters import filesizeformat

from checkpoints.actors import SYSTEM
from checkpoints.models import Prune
from checkpoints.retention import prune_report, prunes
from checkpoints.retention.prunes import PruneRefused, hold_prune_lock

SHOWN = 50  # runs that are named; --json has all of them


class Command(BaseCommand):
    help = (
        "Remove the checkpoints that no retention policy keeps and nothing holds. Finishes an interrupted prune "
        "first. Exits with 0 when done, with 1 if refused or if another process is pruning."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="say what would be removed, and remove nothing")
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of text")

    def handle(self, *, dry_run: bool = False, **options: Any) -> None:
        with hold_prune_lock(wait=True):
            self._prune(dry_run=dry_run, as_json=options["json"])

    def _prune(self, *, dry_run: bool, as_json: bool) -> None:
        if not dry_run:
            for unfinished in Prune.objects.under_way():
                self._apply(unfinished, as_json, "Finished a prune that was interrupted.")
        prune = prunes.begin(by=SYSTEM)
        prunes.look(prune)
        try:
            if dry_run:
                self._say(prune, as_json)
            else:
                prunes.order(prune, seen=bytes(prune.digest), by=SYSTEM)
                self._apply(prune, as_json)
        except PruneRefused as error:
            raise CommandError(str(error)) from error
        finally:
            prunes.drop(prune)

    def _apply(self, prune: Prune, as_json: bool, words: str = "") -> None:
        if not prunes.apply(prune):
            raise CommandError("It was not finished within the hour; run the command again to go on.")
        if prune.status == Prune.Status.STOPPED:
            raise CommandError(f"It was stopped; {prune.removed:,} checkpoints were removed by then.")
        prunes.remove_files(prune)
        if words and not as_json:
            self.stdout.write(words)
        self._say(prune, as_json)

    def _say(self, prune: Prune, as_json: bool) -> None:
        if as_json:
            self.stdout.write(json.dumps(prune_report.facts(prune)))
            return
        for line in prune_report.lines(prune, limit=SHOWN):
            self.stdout.write(line.words)
        more = prune.lines.count() - SHOWN
        if more > 0:
            self.stdout.write(f"… and {more} more runs.")
        waits = prune.signals_and_waits
        if prune.status == Prune.Status.DONE:
            removed = f"{prune.removed:,} checkpoints, and {waits['gone']:,} signals and waits"
            self.stdout.write(f"Removed {removed}, {filesizeformat(prune.freed)} freed.")
        else:
            removed = f"{prune.checkpoints:,} checkpoints, and {waits['shown']:,} signals and waits"
            self.stdout.write(f"Would remove {removed}, about {filesizeformat(prune.size)}. Nothing was removed.")
