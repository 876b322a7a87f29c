"""Events: append-only rows that live pages, notifications and the audit read, in the order of `cursor`."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from django.db.models import F, Func, Q, TextField

NOT_SEALED = "checkpoint.saved"  # covered by its run's chain; so many that no page but the run's tells of them


class CurrentTransaction(Func):
    """Gives the id of the transaction that writes the row: PostgreSQL's, and what `xid_offset` adds to it."""

    template = "(pg_current_xact_id()::text::bigint + public.checkpoints_xid_offset())"
    output_field = models.BigIntegerField()


class StatementClock(Func):
    """The database's clock, not the transaction's start."""

    template = "clock_timestamp()"
    output_field = models.DateTimeField()


class Escaped(Func):
    """Bytes as text, whatever they are: what is no ASCII is written as its number."""

    template = "encode(%(expressions)s, 'escape')"
    output_field = TextField()


class EventTerms(Func):
    """What an event is found by: its kind, subject, actor's name and data, word by word. As its index has it."""

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

    def told(self) -> EventQuerySet:
        """Leave out saved checkpoints, which the run's own page shows."""
        return self.exclude(kind=NOT_SEALED)


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

    objects = EventQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index("xid", "id", name="event_cursor"),
            models.Index("xid", "id", name="event_to_seal", condition=~Q(kind=NOT_SEALED)),
            models.Index("run_id", "id", name="event_of_run", condition=~Q(kind=NOT_SEALED)),
            # The audit's page goes back in time along one of these. Saved checkpoints, which are most, are in none.
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
    salt = models.BinaryField()  # goes with the text, so that the digest left behind tells nothing
    text = models.BinaryField()  # UTF-8
    terms = SearchVectorField(null=True)  # what it is found by; goes with the text

    class Meta:
        indexes = [GinIndex(fields=["terms"], name="event_text_terms")]

    def __str__(self) -> str:
        return f"text of event {self.event_id}"
