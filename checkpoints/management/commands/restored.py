"""`manage.py restored`: makes numbers and ids continue beyond all that were given before a restore."""

from __future__ import annotations

import os
from typing import Any

import psycopg
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import ProgrammingError

from checkpoints.actors import OPERATOR
from checkpoints.errors import CheckpointError
from checkpoints.events import event_log
from checkpoints.models import Event, Run, Seal
from checkpoints.postgresql import xid_offset

LOST = 10_000
NOTHING = (
    "Nothing was restored into this database: it {}. Restore the backup first, or name its database in DATABASE_URL. A "
    "new installation needs `python -m config.migrate` instead. Nothing was changed."
)


class Command(BaseCommand):
    help = (
        "Record that this database was restored from a backup, before anything else starts on it, so that readers of "
        "events go on where they were. Needs the role that owns the tables: DATABASE_OWNER_URL."
    )
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        words = "how many ids of runs, gates and other rows to skip, which may have been used after the backup ({})"
        parser.add_argument("--lost-ids", type=int, default=LOST, help=words.format(LOST))

    def handle(self, *, lost_ids: int, **options: Any) -> None:
        if lost_ids < 0:
            raise CommandError("--lost-ids must be 0 or more.")
        try:
            with psycopg.connect(os.environ.get("DATABASE_OWNER_URL") or os.environ["DATABASE_URL"]) as owner:
                xid_offset.refuse_another(owner)
                newest, seal = Event.objects.order_by("xid", "id").last(), Seal.objects.order_by("pk").last()
                if newest is None or not (User.objects.exists() or Run.objects.exists()):  # migrating writes events
                    raise CommandError(NOTHING.format("holds no account and no run"))
                xid_offset.raise_offset(owner, lost_ids=lost_ids)
        except ProgrammingError:
            raise CommandError(NOTHING.format("has no tables")) from None
        except CheckpointError as refused:
            raise CommandError(str(refused)) from None
        except psycopg.errors.InsufficientPrivilege:
            raise CommandError("Set DATABASE_OWNER_URL to the role that owns the tables.") from None
        except psycopg.errors.LockNotAvailable:
            raise CommandError("Another process writes to this database: stop Holdpoint's processes first.") from None
        data = {"event": newest.pk, "seal": seal.pk if seal else None, "lost_ids": lost_ids}
        event_log.record("database.restored", subject="database", by=OPERATOR, data=data)
        sealed = f"seal {seal.pk}" if seal else "no seal"
        self.stdout.write(
            f"Restored up to event {newest.pk} and {sealed}. New rows begin {lost_ids} ids later."
            " Verify, then start the processes."
        )
