"""Notices: what one person, or a team's channel, is told of one event, and whether it arrived.

The notice waits in this table until its channel's sender takes it under a lease. A lost lease is taken again, so a
notice may be sent twice, under the same key, and is never lost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from checkpoints.postgresql.prepared_rows import type_numbers
from checkpoints.postgresql.sql import run_sql

LEASE = timedelta(minutes=2)  # longer than a slice of sending with its last message
MOST_URGENT = 2
# The most urgent first; of these the longest due. Those that were written together come by address, to be one message.
_TAKE = """
UPDATE approvals_notice SET token = token + 1, attempts = attempts + 1, busy_until = statement_timestamp() + $3
WHERE id IN (
  SELECT due.id FROM unnest(ARRAY[2, 1, 0]) level CROSS JOIN LATERAL (
    SELECT id FROM approvals_notice
    WHERE channel = $1 AND urgency = level AND status = 'pending' AND next_attempt_at <= statement_timestamp()
      AND {which}
    ORDER BY {order}next_attempt_at, user_id, address_id, id LIMIT $2 FOR UPDATE SKIP LOCKED) due
  ORDER BY level DESC LIMIT $2)
RETURNING id
"""
_DIED = "busy_until < statement_timestamp() AND attempts {} 2"  # whose sender died, once or more often
_FRESH = _TAKE.format(which=f"(busy_until IS NULL OR {_DIED.format('<')})", order="")
_SUSPECT = _TAKE.format(which=_DIED.format(">="), order="attempts, ")
_END = """
UPDATE approvals_notice notice SET status = given.status, word = given.word, busy_until = NULL,
  reference = CASE WHEN given.reference = '' THEN notice.reference ELSE given.reference END,
  attempts = notice.attempts - CASE WHEN given.tried THEN 0 ELSE 1 END,
  next_attempt_at = CASE WHEN given.status = 'pending'
    THEN statement_timestamp() + make_interval(secs => given.pause) END,
  finished_at = CASE WHEN given.status = 'pending' THEN NULL ELSE statement_timestamp() END
FROM unnest($1::bigint[], $2::int[], $3::text[], $4::text[], $5::text[], $6::float8[], $7::boolean[])
  AS given (id, token, status, word, reference, pause, tried)
WHERE notice.id = given.id AND notice.token = given.token AND notice.status = 'pending'
RETURNING notice.id
"""
_MOVE = """
UPDATE approvals_notice notice SET next_attempt_at = given.due
FROM unnest($1::bigint[], $2::timestamptz[]) AS given (id, due) WHERE notice.id = given.id AND notice.status = 'pending'
"""
_OPENED = """
UPDATE approvals_notice SET opened_at = statement_timestamp()
WHERE gate_id = $1 AND user_id = $2 AND status = 'sent' AND opened_at IS NULL
"""


class NoticeQuerySet(models.QuerySet["Notice"]):
    """Queries of notices, and the moves of many."""

    def pending(self) -> NoticeQuerySet:
        """Select those that are to be sent, now or later."""
        return self.filter(status=Notice.Status.PENDING)

    def outlived(self, kept: timedelta) -> NoticeQuerySet:
        """Select those that were written, and due, longer ago than `kept`, but none of a gate that is still open.

        They say who was asked about it, and where its end is told.
        """
        limit = Now() - kept
        return self.filter(created_at__lt=limit).exclude(next_attempt_at__gte=limit).exclude(gate__status="open")

    def take(self, channel: str, most: int) -> list[Notice]:
        """Take the next due notices of a channel under a lease; of two senders the second gets others.

        The most urgent come first. One whose senders died twice is taken alone, after all others: it may be what killed
        them, and no other one is to be counted as tried by that.
        """
        rows = run_sql(_FRESH, [channel, most, LEASE]) or run_sql(_SUSPECT, [channel, 1, LEASE])
        known = {each.pk: each for each in self.select_related("user", "address").filter(pk__in=[pk for (pk,) in rows])}
        return sorted(known.values(), key=lambda each: (-each.urgency, each.pk))

    def end(self, ends: Sequence[NoticeEnd]) -> set[int]:
        """Record what became of notices that this sender took; return the ids of those that it still held."""
        if not ends:
            return set()
        columns = zip(*(each.columns for each in ends), strict=True)
        return {pk for (pk,) in run_sql(_END, [list(column) for column in columns])}

    def move(self, due: Mapping[int, datetime]) -> None:
        """Give each of these notices, by id, another time at which it is due, where it is still pending."""
        if due:
            run_sql(_MOVE, [list(due), list(due.values())])

    def drop(self, word: str) -> int:
        """Drop pending ones that nobody sends now, with this code as the reason; return how many."""
        free = Q(busy_until__isnull=True) | Q(busy_until__lt=Now())
        return (
            self.pending()
            .filter(free)
            .update(status=Notice.Status.DROPPED, word=word, next_attempt_at=None, finished_at=Now())
        )

    def unopened(self, user: Any) -> NoticeQuerySet:
        """Select those that were sent to a person who has not opened the gate's page since."""
        return self.filter(user=user, status=Notice.Status.SENT, opened_at__isnull=True)

    def opened(self, gate_id: int, *, by: User) -> None:
        """Record that a signed-in person opened the page of a gate that they were told of."""
        run_sql(_OPENED, [gate_id, by.pk])

    def references(self, gates: Collection[int]) -> dict[tuple[int, str, int | None, int | None], str]:
        """Return, by (gate, channel, person, address), the references of the messages about each of these gates.

        The oldest first, separated by blanks.
        """
        sent = self.filter(gate__in=list(gates), status=Notice.Status.SENT).exclude(reference="").order_by("pk")
        columns = sent.values_list("gate_id", "channel", "user_id", "address_id", "reference")
        found: dict[tuple[int, str, int | None, int | None], dict[str, None]] = {}
        for gate, channel, user, address, reference in columns:
            found.setdefault((gate, channel, user, address), {})[reference] = None
        return {whose: " ".join(references) for whose, references in found.items()}


class NoticeEnd:
    """The result of one attempt: the notice with its new status, or when it is tried again."""

    def __init__(
        self, notice: Notice, status: str, word: str = "", *, reference: str = "", pause: float = 0, tried: bool = True
    ) -> None:
        self.notice = notice
        self.columns = (notice.pk, notice.token, status, word, reference, float(pause), tried)


class Notice(models.Model):
    """One message to one address of one channel."""

    class Status(models.TextChoices):
        # pending -> sent | failed | dropped
        PENDING = "pending", "Pending"
        SENT = "sent", "Sent"
        FAILED = "failed", "Failed"
        DROPPED = "dropped", "Not needed any more"

    event = models.BigIntegerField(null=True)  # the id of the event that it tells of; null: a digest, or a test
    kind = models.CharField(max_length=10)  # see approvals.notifications.message.NoticeKind
    channel = models.CharField(max_length=12)
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+", db_index=False)
    team = models.ForeignKey(Group, null=True, on_delete=models.CASCADE, related_name="+")  # of a team's address
    address = models.ForeignKey("approvals.ChannelAddress", null=True, on_delete=models.SET_NULL, related_name="+")
    gate = models.ForeignKey("approvals.Gate", null=True, on_delete=models.CASCADE, related_name="+")
    run = models.BigIntegerField(null=True)  # of a message about a run
    urgency = models.SmallIntegerField(default=1, db_default=1)  # see message.Urgency
    status = models.CharField(max_length=8, choices=Status.choices, default=Status.PENDING)
    word = models.CharField(max_length=30, default="", db_default="")  # a code of the last attempt, or of why it ended
    reference = models.CharField(max_length=200, default="", db_default="")  # see channel.Receipt
    attempts = models.IntegerField(default=0, db_default=0)
    next_attempt_at = models.DateTimeField(null=True, db_default=Now())
    busy_until = models.DateTimeField(null=True)  # held by a sender until then
    token = models.IntegerField(default=0, db_default=0)  # fencing token of that sender
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    opened_at = models.DateTimeField(null=True)  # the person's first visit to the gate's page after it was sent

    objects = NoticeQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["event", "kind", "channel", "user", "address"],
                name="one_notice_of_an_event",
                condition=Q(event__isnull=False),
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                condition=Q(status="pending", next_attempt_at__isnull=False)
                | (~Q(status="pending") & Q(next_attempt_at__isnull=True)),
                name="only_a_pending_notice_is_due",
            ),
        ]
        indexes = [
            models.Index("channel", "urgency", "next_attempt_at", name="notice_due", condition=Q(status="pending")),
            models.Index("user", F("id").desc(), name="notice_of_person", condition=Q(user__isnull=False)),
            models.Index(fields=["created_at"], name="notice_by_age"),
            models.Index(fields=["finished_at"], name="notice_failed", condition=Q(status="failed")),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.channel}, notice {self.pk}"

    @property
    def key(self) -> str:
        """Return the name of the message, the same at each attempt."""
        return f"{self.pk}.{int(self.created_at.timestamp())}"


def known_to(gates: Collection[int]) -> dict[int, set[tuple[int | None, str, int | None]]]:
    """Return, by gate, the (person, channel, address) that were asked about it, or are about to be."""
    found: dict[int, set[tuple[int | None, str, int | None]]] = {}
    sql = (
        "SELECT gate_id, user_id, channel, address_id FROM approvals_notice WHERE gate_id = ANY($1) AND kind = 'asked'"
    )
    for gate, *who in run_sql(sql, [type_numbers(list(gates))]):
        found.setdefault(gate, set()).add(tuple(who))
    return found


def fields_of(notice: Notice) -> dict[str, Any]:
    """Return the columns that a log line names."""
    return {"notice": notice.pk, "channel": notice.channel, "kind": notice.kind, "gate": notice.gate_id}
