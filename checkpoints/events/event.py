"""Events: append-only rows that live pages, notifications and the audit read, in the order of `cursor`."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Func, Q, TextField

NOT_SEALED = "checkpoint.saved"  # covered by its run's chain; so many that only the run's page lists them


class CurrentTransaction(Func):
    """The id of the transaction that writes the row: PostgreSQL's plus the offset of `xid_offset`."""

    template = "(pg_current_xact_id()::text::bigint + public.checkpoints_xid_offset())"
    output_field = models.BigIntegerField()


class StatementClock(Func):
    """The database's clock now, not at the transaction's start."""

    template = "clock_timestamp()"
    output_field = models.DateTimeField()


class Escaped(Func):
    """Any bytes as text: bytes that are not ASCII are written as octal numbers."""

    template = "encode(%(expressions)s, 'escape')"
    output_field = TextField()


class EventTerms(Func):
    """An event's search terms: the words of its kind, subject, actor's name and data, exactly as its index has them."""

    template = (
        "to_tsvector('simple'::regconfig, translate(left(%(expressions)s, 10000), '.:_-/\"{}[](),=\\',"
        " '               '))"
    )
    arg_joiner = " || ' ' || "
    output_field = SearchVectorField()

    def __init__(self, *expressions: Any, **extra: Any) -> None:
        super().__init__(*(expressions or (F("kind"), F("subject"), F("actor_name"), Escaped(F("data")))), **extra)


class EventQuerySet(models.QuerySet["Event"]):
    """Questions about many events."""

    def sealable(self) -> EventQuerySet:
        """Exclude saved checkpoints, which the run's own page lists."""
        return self.exclude(kind=NOT_SEALED)


class Event(models.Model):
    """A record of one change: its kind, subject and actor. The application's role may only insert and select."""

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

    objects = EventQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index("xid", "id", name="event_cursor"),
            models.Index("xid", "id", name="event_to_seal", condition=~Q(kind=NOT_SEALED)),
            models.Index("run_id", "id", name="event_of_run", condition=~Q(kind=NOT_SEALED)),
            # The audit's page reads back in time along one of these. Saved checkpoints, the most common, are in none.
            models.Index("at", "id", name="event_by_time", condition=~Q(kind=NOT_SEALED)),
            models.Index("kind", "at", "id", name="event_by_kind", condition=~Q(kind=NOT_SEALED)),
            models.Index("team_id", "at", "id", name="event_by_team", condition=~Q(kind=NOT_SEALED)),
            models.Index("actor", "at", "id", name="event_by_actor", condition=~Q(kind=NOT_SEALED)),
            models.Index("subject", "at", "id", name="event_by_subject", condition=~Q(kind=NOT_SEALED)),
            GinIndex(EventTerms(), name="event_terms", condition=~Q(kind=NOT_SEALED)),
        ]
        permissions = [
            ("view_audit", "May see the team's audit, verify the seals and export"),
            ("erase_text", "May erase what people wrote from the audit"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class EventText(models.Model):
    """The personal text of an event, which may be erased; the event keeps its digest."""

    event = models.OneToOneField(
        Event, primary_key=True, on_delete=models.DO_NOTHING, db_constraint=False, related_name="words"
    )
    salt = models.BinaryField()  # erased with the text, so that the remaining digest reveals nothing
    text = models.BinaryField()  # UTF-8
    terms = SearchVectorField(null=True)  # its search terms; erased with the text

    class Meta:
        indexes = [GinIndex(fields=["terms"], name="event_text_terms")]

    def __str__(self) -> str:
        return f"text of event {self.event_id}"
