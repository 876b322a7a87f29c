"""The outbox: what one person, a team's channel or a webhook is to get, and each attempt to send it.

A message is written in the transaction of what it tells of. It waits here until a sender takes it, under a lease of its
own beside that of its channel. The message to a webhook has its body from the start and is sent as it is; any other is
built when it is due, and dropped where it is not needed any more. An attempt is counted, and has its row, before the
message is handed over, so that a sender who dies leaves a lost attempt of what it was sending and of nothing else. A
lost message is taken again: it may arrive twice, under the same key, and is never lost.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from django.contrib.auth.models import Group, User
from django.db import models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from checkpoints.actors import Actor
from checkpoints.postgresql.prepared_rows import type_numbers
from checkpoints.postgresql.sql import run_sql

from .channel_state import ChannelState

LEASE = timedelta(seconds=150)  # longer than a slice of sending with its last message
FREE = Q(busy_until__isnull=True) | Q(busy_until__lt=Now())
# The most urgent first; of these the longest due. Those that were written together come by address, to be one message.
_TAKE = """
UPDATE approvals_notice SET token = token + 1, taken = taken + 1, busy_until = statement_timestamp() + $3
WHERE id IN (
  SELECT due.id FROM unnest(ARRAY[2, 1, 0]) level CROSS JOIN LATERAL (
    SELECT id FROM approvals_notice
    WHERE channel = $1 AND urgency = level AND status = 'pending' AND next_attempt_at <= statement_timestamp()
      AND {which}
    ORDER BY {order}next_attempt_at, user_id, address_id, id LIMIT $2 FOR UPDATE SKIP LOCKED) due
  ORDER BY level DESC LIMIT $2)
RETURNING {columns}
"""
_DIED = "busy_until < statement_timestamp() AND taken {} 2"  # whose sender died, once or more often
_FRESH = f"(busy_until IS NULL OR {_DIED.format('<')})"
_HAND_OVER = """
WITH held AS (
  UPDATE approvals_notice message SET attempts = attempts + 1, tries = tries + 1
  FROM unnest($1::bigint[], $2::int[]) AS given (id, token)
  WHERE message.id = given.id AND message.token = given.token AND status = 'pending' RETURNING message.id, attempts),
lost AS (
  UPDATE approvals_messageattempt SET result = 'lost'
  WHERE message_id IN (SELECT id FROM held) AND result = '' RETURNING id)
INSERT INTO approvals_messageattempt (message_id, number, result) SELECT id, attempts, '' FROM held
RETURNING message_id, number
"""
_END = """
WITH given AS (
  SELECT * FROM unnest($1::bigint[], $2::int[], $3::int[], $4::text[], $5::text[], $6::text[], $7::float8[],
    $8::text[], $9::int[], $10::float8[]) AS given (id, token, number, status, word, reference, pause,
      result, answer, seconds)),
attempt AS (
  UPDATE approvals_messageattempt attempt SET result = given.result, status = given.answer,
    duration = make_interval(secs => given.seconds)
  FROM given WHERE attempt.message_id = given.id AND attempt.number = given.number AND given.result <> ''
  RETURNING attempt.id)
UPDATE approvals_notice message SET status = given.status, word = given.word, busy_until = NULL, taken = 0,
  reference = CASE WHEN given.reference = '' THEN message.reference ELSE given.reference END,
  next_attempt_at = CASE WHEN given.status = 'pending'
    THEN statement_timestamp() + make_interval(secs => given.pause) END,
  finished_at = CASE WHEN given.status = 'pending' THEN NULL ELSE statement_timestamp() END
FROM given WHERE message.id = given.id AND message.token = given.token AND message.status = 'pending'
RETURNING message.id
"""
_MOVE = """
UPDATE approvals_notice message SET next_attempt_at = given.due
FROM unnest($1::bigint[], $2::timestamptz[]) AS given (id, due)
WHERE message.id = given.id AND message.status = 'pending'
"""
_OPENED = """
UPDATE approvals_notice SET opened_at = statement_timestamp()
WHERE gate_id = $1 AND user_id = $2 AND status = 'sent' AND opened_at IS NULL
"""
# The channels of these by which something is to be sent now, and by which nobody sends, each with its lease's number.
DUE = """
SELECT known.channel, coalesce(state.token, 0) FROM unnest($1::text[]) known (channel)
LEFT JOIN approvals_channelstate state ON state.channel = known.channel
WHERE EXISTS (
  SELECT FROM unnest(ARRAY[0, 1, 2]) level CROSS JOIN LATERAL (
    SELECT id FROM approvals_notice message
    WHERE message.channel = known.channel AND urgency = level AND status = 'pending'
      AND next_attempt_at <= statement_timestamp() AND (busy_until IS NULL OR busy_until < statement_timestamp())
    ORDER BY next_attempt_at LIMIT 1) due)
AND greatest(state.busy_until, state.paused_until) > statement_timestamp() IS NOT TRUE
"""
_LATELY_FAILED = """
SELECT count(*) FROM approvals_webhook hook CROSS JOIN LATERAL (
  SELECT status FROM approvals_notice WHERE webhook_id = hook.id ORDER BY id DESC LIMIT 100) last
WHERE hook.status = 'enabled' AND last.status = 'failed'
"""


class MessageQuerySet(models.QuerySet["Message"]):
    """Queries of messages, and the moves of many."""

    def pending(self) -> MessageQuerySet:
        """Select those that are to be sent, now or later."""
        return self.filter(status=Message.Status.PENDING)

    def to_people(self) -> MessageQuerySet:
        """Select those that are not for webhooks."""
        return self.filter(webhook__isnull=True)

    def to_webhooks(self) -> MessageQuerySet:
        """Select those that are for webhooks."""
        return self.filter(webhook__isnull=False)

    def outlived(self, age: timedelta) -> MessageQuerySet:
        """Select those that were written longer ago than `age`, and that no sender holds.

        None of people's that was due later, or of an open gate: they say who was asked, and where its end is told.
        """
        limit = Now() - age
        wanted = Q(gate__status="open") | Q(next_attempt_at__gte=limit)
        return self.filter(FREE, created_at__lt=limit).exclude(wanted, webhook__isnull=True)

    def take(self, channel: str, most: int) -> list[Message]:
        """Take the next due messages of a channel under a lease; of two senders the second gets others.

        The most urgent come first. One whose senders died twice is taken alone, after all others: it may be what killed
        them, and no other one is to be tried along with it.
        """
        rows = run_sql(_take(_FRESH, ""), [channel, most, LEASE])
        rows = rows or run_sql(_take(_DIED.format(">="), "taken, "), [channel, 1, LEASE])
        names = [field.attname for field in Message._meta.concrete_fields]
        taken = [Message.from_db(self.db, names, row) for row in rows]
        return sorted(taken, key=lambda each: (-each.urgency, each.pk))

    def hand_over(self, messages: Sequence[Message]) -> list[Message]:
        """Count an attempt of each that this sender still holds, with its row; return those. Send no other."""
        if not messages:
            return []
        numbers = dict(run_sql(_HAND_OVER, [[each.pk for each in messages], [each.token for each in messages]]))
        for each in messages:
            each.attempts = numbers.get(each.pk, each.attempts)
        return [each for each in messages if each.pk in numbers]

    def end(self, ends: Sequence[MessageEnd]) -> set[int]:
        """Record what became of messages that this sender took; return the ids of those that it still held."""
        if not ends:
            return set()
        columns = zip(*(each.columns for each in ends), strict=True)
        return {pk for (pk,) in run_sql(_END, [list(column) for column in columns])}

    def move(self, due: Mapping[int, datetime]) -> None:
        """Give each of these messages, by id, another time at which it is due, where it is still pending."""
        if due:
            run_sql(_MOVE, [list(due), list(due.values())])

    def give_up(self, status: str, word: str) -> int:
        """End pending ones with this status, and a code as the reason; return how many."""
        return self.pending().update(status=status, word=word, next_attempt_at=None, busy_until=None, finished_at=Now())

    def due_channels(self, channels: Collection[str]) -> list[tuple[str, int]]:
        """List those of these channels by which something is to be sent now and nobody sends, each with a number.

        The number changes whenever somebody takes the channel.
        """
        return [(name, token) for name, token in run_sql(DUE, [list(channels)])]

    def lately_failed(self) -> int:
        """Count how many failed for good, of the last hundred of each enabled webhook."""
        ((failed,),) = run_sql(_LATELY_FAILED, [])
        return int(failed)

    def unopened(self, user: Any) -> MessageQuerySet:
        """Select those that were sent to a person who has not opened the gate's page since."""
        return self.filter(user=user, status=Message.Status.SENT, opened_at__isnull=True)

    def opened(self, gate_id: int, *, by: User) -> None:
        """Record that a signed-in person opened the page of a gate that they were told of."""
        run_sql(_OPENED, [gate_id, by.pk])

    def references(self, gates: Collection[int]) -> dict[tuple[int, str, int | None, int | None], str]:
        """Return, by (gate, channel, person, address), the references of the messages about each of these gates.

        The oldest first, separated by blanks.
        """
        sent = self.filter(gate__in=list(gates), status=Message.Status.SENT).exclude(reference="").order_by("pk")
        columns = sent.values_list("gate_id", "channel", "user_id", "address_id", "reference")
        found: dict[tuple[int, str, int | None, int | None], dict[str, None]] = {}
        for gate, channel, user, address, reference in columns:
            found.setdefault((gate, channel, user, address), {})[reference] = None
        return {whose: " ".join(references) for whose, references in found.items()}


@cache
def _take(which: str, order: str) -> str:
    columns = ", ".join(f'"{field.column}"' for field in Message._meta.concrete_fields)
    return _TAKE.format(which=which, order=order, columns=columns)


class MessageEnd:
    """The end of a message that was taken: its new status, or when it is tried again.

    `result`, `answer` and `seconds` are of its attempt: a code, the answer's HTTP status and how long it took; "" where
    it was not handed over.
    """

    def __init__(
        self, message: Message, status: str, word: str = "", *, reference: str = "", pause: float = 0, result: str = "",
        answer: int | None = None, seconds: float | None = None,
    ) -> None:  # fmt: skip
        self.message, self.word = message, word
        self.columns = (
            message.pk, message.token, message.attempts, status, word[:30], reference[:200], float(pause), result[:30],
            answer, seconds,
        )  # fmt: skip


class Message(models.Model):
    """One message to one address of one channel. Its key, and the body of one to a webhook, are the same always."""

    class Status(models.TextChoices):
        # pending -> sent | failed | dropped; of a webhook's sent | failed -> pending, sent again by order
        PENDING = "pending", "Pending"
        SENT = "sent", "Sent"
        FAILED = "failed", "Failed"
        DROPPED = "dropped", "Not needed any more"

    event = models.BigIntegerField(null=True)  # the id of the event that it tells of; null: a digest, a test, a webhook
    kind = models.CharField(max_length=30)  # see approvals.notifications.building.NoticeKind; a webhook's: the event's
    channel = models.CharField(max_length=30)  # "email", "slack" and so on, or a webhook's: see channel_of
    user = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="+", db_index=False)
    team = models.ForeignKey(Group, null=True, on_delete=models.CASCADE, related_name="+")  # of a team's address
    address = models.ForeignKey("approvals.ChannelAddress", null=True, on_delete=models.SET_NULL, related_name="+")
    webhook = models.ForeignKey(
        "approvals.Webhook", null=True, on_delete=models.PROTECT, related_name="messages", db_index=False
    )
    gate = models.ForeignKey("approvals.Gate", null=True, on_delete=models.CASCADE, related_name="+")
    turn = models.IntegerField(null=True)  # the gate's, of a message that asks: see Gate.turn
    run = models.BigIntegerField(null=True)  # of a message about a run
    urgency = models.SmallIntegerField(default=1, db_default=1)  # see message.Urgency
    name = models.CharField(max_length=40, null=True)  # noqa: DJ001 - a webhook's: the receiver's id of it
    body = models.BinaryField(null=True)  # what a webhook gets; null: it is built when it is sent
    status = models.CharField(max_length=8, choices=Status.choices, default=Status.PENDING)
    word = models.CharField(max_length=30, default="", db_default="")  # a code of the last attempt, or of why it ended
    reference = models.CharField(max_length=200, default="", db_default="")  # see channel.Receipt
    attempts = models.IntegerField(default=0, db_default=0)
    tries = models.IntegerField(default=0, db_default=0)  # attempts since it was written, or ordered again
    next_attempt_at = models.DateTimeField(null=True, db_default=Now())
    busy_until = models.DateTimeField(null=True)  # held by a sender until then
    taken = models.IntegerField(default=0, db_default=0)  # how often in a row by senders, of which all but one died
    token = models.IntegerField(default=0, db_default=0)  # fencing token of that sender
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)
    opened_at = models.DateTimeField(null=True)  # the person's first visit to the gate's page after it was sent

    objects = MessageQuerySet.as_manager()

    class Meta:
        db_table = "approvals_notice"
        constraints = [
            models.UniqueConstraint(
                fields=["event", "kind", "channel", "user", "address"],
                name="one_notice_of_an_event",
                condition=Q(event__isnull=False),
                nulls_distinct=False,
            ),
            models.UniqueConstraint(
                fields=["gate", "turn", "kind", "channel", "user", "address"],
                name="asked_once_a_turn",
                condition=Q(turn__isnull=False),
                nulls_distinct=False,
            ),
            models.UniqueConstraint(fields=["webhook", "gate", "kind"], name="one_message_per_webhook_and_event"),
            models.UniqueConstraint(fields=["name"], name="one_message_of_a_name"),
            models.CheckConstraint(
                condition=Q(status="pending", next_attempt_at__isnull=False)
                | (~Q(status="pending") & Q(next_attempt_at__isnull=True)),
                name="only_a_pending_notice_is_due",
            ),
        ]
        indexes = [
            models.Index("channel", "urgency", "next_attempt_at", name="notice_due", condition=Q(status="pending")),
            models.Index("user", F("id").desc(), name="notice_of_person", condition=Q(user__isnull=False)),
            models.Index("webhook", F("id").desc(), name="message_of_webhook", condition=Q(webhook__isnull=False)),
            models.Index(fields=["created_at"], name="notice_by_age"),
            models.Index(fields=["finished_at"], name="notice_failed", condition=Q(status="failed")),
        ]

    def __str__(self) -> str:
        return f"{self.kind} by {self.channel}, message {self.pk}"

    @property
    def key(self) -> str:
        """Return the name of the message, the same at each attempt."""
        return self.name or f"{self.pk}.{int(self.created_at.timestamp())}"

    def send_again(self, *, by: Actor) -> bool:
        """Send a webhook's once more, now, with as many tries as a new one.

        False if it is pending, or its webhook disabled.
        """
        with transaction.atomic():
            ended = Message.objects.filter(pk=self.pk, webhook__status="enabled").exclude(status=Message.Status.PENDING)
            again = {"status": Message.Status.PENDING, "tries": 0, "next_attempt_at": Now(), "finished_at": None}
            if self.webhook is None or not ended.update(**again):
                return False
            ChannelState.objects.wake(self.channel)
            self.webhook.say("webhook.resent", by=by, data={"delivery": self.pk, "message": self.name})
        return True


class MessageAttempt(models.Model):
    """One attempt to send a message. Its row is written before it is sent, so that a lost attempt shows too."""

    message = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="log", db_index=False)
    number = models.IntegerField()
    at = models.DateTimeField(db_default=Now())
    result = models.CharField(max_length=30, default="", db_default="")  # empty: under way
    status = models.IntegerField(null=True)  # of the answer
    duration = models.DurationField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["message", "number"], name="a_message_s_attempts_are_counted")]

    def __str__(self) -> str:
        return f"attempt {self.number} of message {self.message_id}"


def known_to(gates: Collection[int]) -> dict[int, set[tuple[int | None, str, int | None]]]:
    """Return, by gate, the (person, channel, address) that were asked about it, or are about to be."""
    found: dict[int, set[tuple[int | None, str, int | None]]] = {}
    sql = (
        "SELECT gate_id, user_id, channel, address_id FROM approvals_notice WHERE gate_id = ANY($1) AND kind = 'asked'"
    )
    for gate, *who in run_sql(sql, [type_numbers(list(gates))]):
        found.setdefault(gate, set()).add(tuple(who))
    return found


def fields_of(message: Message) -> dict[str, Any]:
    """Return the columns that a log line names."""
    return {"message": message.pk, "channel": message.channel, "kind": message.kind, "gate": message.gate_id}
