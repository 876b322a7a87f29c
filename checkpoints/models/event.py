"""Events: append-only rows that live pages, notifications and the audit read.

Ids of concurrent transactions do not commit in order, so a reader's cursor is (xid, id), and a reader
stops below the oldest transaction still open: see checkpoints.cursor.
"""

from __future__ import annotations

from django.db import models
from django.db.models import Func


class CurrentTransaction(Func):
    """The 64-bit id of the transaction that writes the row."""

    template = "(pg_current_xact_id()::text::bigint)"
    output_field = models.BigIntegerField()


class StatementClock(Func):
    """The database's clock, not the transaction's start."""

    template = "clock_timestamp()"
    output_field = models.DateTimeField()


class Event(models.Model):
    """What happened, to what, by whom. The application's role may insert and select, nothing else."""

    xid = models.BigIntegerField(db_default=CurrentTransaction())
    at = models.DateTimeField(db_default=StatementClock())
    kind = models.CharField(max_length=60)  # "gate.opened", "checkpoint.saved"
    run_id = models.BigIntegerField(null=True)
    team_id = models.BigIntegerField(null=True)
    subject = models.CharField(max_length=120)  # "gate:42", "run:7", "checkpoint:<uuid>"
    version = models.IntegerField(default=0)
    actor = models.CharField(max_length=120)  # "user:7", "agent:refunds", "system"
    actor_name = models.CharField(max_length=150, default="")
    data = models.BinaryField(default=b"{}")  # canonical JSON, never personal text
    text_digest = models.BinaryField(null=True)

    class Meta:
        indexes = [
            models.Index("xid", "id", name="event_cursor"),
            models.Index("xid", "id", name="event_to_seal", condition=~models.Q(kind="checkpoint.saved")),
            models.Index("run_id", "id", name="event_of_run", condition=~models.Q(kind="checkpoint.saved")),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class EventText(models.Model):
    """The personal text of an event, which may be erased; the event keeps its digest."""

    event = models.OneToOneField(
        Event, primary_key=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="words"
    )
    salt = models.BinaryField()  # goes with the text, so that the digest left behind tells nothing
    text = models.BinaryField()  # UTF-8

    def __str__(self) -> str:
        return f"text of event {self.event_id}"
