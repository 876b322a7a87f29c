"""Deliveries: one message for one webhook, written in its event's transaction, and each attempt to send it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self

from django.conf import settings
from django.db import connection, models, transaction
from django.db.models import Count, Exists, F, OuterRef, Q
from django.db.models.functions import Coalesce, Now

from approvals.outbound.sending import GONE, WORDS, SendResult
from checkpoints.actors import Actor

from .webhook import Webhook

AT_ONCE = 2  # messages of one webhook sent at the same time, so that a slow receiver leaves the other workers free
SLACK = timedelta(seconds=30)  # added to the time limit of sending; then a silent worker counts as lost
# The same deliveries as DeliveryQuerySet.due, read along the index, however many of a webhook's are due.
_FIRST_DUE = """
SELECT due.id, due.attempts FROM approvals_webhook hook CROSS JOIN LATERAL (
  SELECT id, attempts, next_attempt_at FROM approvals_delivery
  WHERE webhook_id = hook.id AND status = 'pending' AND next_attempt_at <= statement_timestamp()
    AND (busy_until IS NULL OR busy_until < statement_timestamp())
  ORDER BY next_attempt_at LIMIT %(most)s) due
WHERE hook.status = 'enabled' AND (%(webhook)s::bigint IS NULL OR hook.id = %(webhook)s)
ORDER BY due.next_attempt_at
"""
_LATELY_FAILED = """
SELECT count(*) FROM approvals_webhook hook CROSS JOIN LATERAL (
  SELECT status FROM approvals_delivery WHERE webhook_id = hook.id ORDER BY id DESC LIMIT 100) last
WHERE hook.status = 'enabled' AND last.status = 'failed'
"""
FREE = Q(busy_until__isnull=True) | Q(busy_until__lt=Now())


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    """Queries of deliveries, and the claim of one."""

    def due(self) -> Self:
        """Select those that are to be sent now and that no worker holds."""
        told = Webhook.objects.enabled().filter(pk=OuterRef("webhook_id"))
        return self.filter(FREE, Exists(told), status=Delivery.Status.PENDING, next_attempt_at__lte=Now())

    def pending(self) -> Self:
        """Select those that are to be sent, now or later."""
        return self.filter(status=Delivery.Status.PENDING)

    def lately_failed(self) -> int:
        """Count how many failed for good, of the last hundred of each enabled webhook."""
        with connection.cursor() as cursor:
            cursor.execute(_LATELY_FAILED)
            return int(cursor.fetchone()[0])

    def first_due(self, webhook: int | None = None) -> list[tuple[int, int]]:
        """List (number, attempts so far) of the next few that are due for each webhook, or for this one."""
        with connection.cursor() as cursor:
            cursor.execute(_FIRST_DUE, {"webhook": webhook, "most": AT_ONCE})
            found: list[tuple[int, int]] = cursor.fetchall()
        return found

    def take(self, number: int) -> Attempt | None:
        """Begin the next attempt of a due delivery; None where it is not due, or AT_ONCE of its webhook are being sent.

        The update itself checks the conditions, so that of two workers the second finds it taken.
        """
        lease = timedelta(seconds=settings.HOLDPOINT_WEBHOOKS_TIMEOUT) + SLACK
        in_hand = Delivery.objects.filter(webhook=OuterRef("webhook_id"), busy_until__gt=Now())
        counted = in_hand.order_by().values("webhook").annotate(number=Count("pk")).values("number")
        with transaction.atomic():
            free = self.due().filter(pk=number).alias(in_hand=Coalesce(counted, 0)).filter(in_hand__lt=AT_ONCE)
            if not free.update(
                token=F("token") + 1, attempts=F("attempts") + 1, tries=F("tries") + 1, busy_until=Now() + lease
            ):
                return None
            taken = self.select_related("webhook").get(pk=number)
            taken.log.filter(result="").update(result="lost")
            return Attempt.objects.create(delivery=taken, number=taken.attempts)

    def give_up(self, word: str) -> int:
        """Fail the pending ones, with this code as the reason; return how many."""
        return self.pending().update(
            status=Delivery.Status.FAILED, result=word, finished_at=Now(), next_attempt_at=None, busy_until=None
        )

    def outlived(self, kept: timedelta) -> Self:
        """Select those that were written longer ago than `kept` and that no worker holds."""
        return self.filter(FREE, created_at__lt=Now() - kept)


class Delivery(models.Model):
    """One message for one webhook. Its id and its body are the same at each attempt."""

    class Status(models.TextChoices):
        # pending -> delivered | failed; delivered | failed -> pending, sent again by order
        PENDING = "pending", "Pending"
        DELIVERED = "delivered", "Delivered"
        FAILED = "failed", "Failed"

    webhook = models.ForeignKey(
        "approvals.Webhook", on_delete=models.PROTECT, related_name="deliveries", db_index=False
    )
    gate = models.ForeignKey("approvals.Gate", null=True, on_delete=models.CASCADE, related_name="+")  # null: a test
    message = models.CharField(max_length=40, unique=True)  # the message's id, for the receiver
    kind = models.CharField(max_length=30)  # gate.opened, gate.closed, gate.expired, gate.withdrawn, webhook.test
    body = models.BinaryField()
    status = models.CharField(max_length=9, choices=Status.choices, default=Status.PENDING)
    result = models.CharField(max_length=20, default="", blank=True)  # of the last attempt, see sending.WORDS
    attempts = models.IntegerField(default=0)
    tries = models.IntegerField(default=0)  # attempts since it was written, or ordered again
    next_attempt_at = models.DateTimeField(null=True, db_default=Now())
    busy_until = models.DateTimeField(null=True)  # held by a worker until then
    token = models.IntegerField(default=0)  # fencing token of that worker
    created_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(fields=["webhook", "gate", "kind"], name="one_delivery_per_webhook_and_event"),
            models.CheckConstraint(
                condition=Q(status="pending", next_attempt_at__isnull=False)
                | (~Q(status="pending") & Q(next_attempt_at__isnull=True)),
                name="only_a_pending_delivery_is_due",
            ),
        ]
        indexes = [
            models.Index(fields=["webhook", "next_attempt_at"], name="delivery_due", condition=Q(status="pending")),
            models.Index(fields=["webhook", "-id"], name="delivery_of_webhook"),
            models.Index(fields=["created_at"], name="delivery_by_age"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} for webhook {self.webhook_id}"

    @property
    def why(self) -> str:
        """Describe the result of the last attempt."""
        return words(self.result)

    def end(self, attempt: Attempt, sent: SendResult, *, duration: timedelta, pause: float | None) -> bool:
        """Record the result of an attempt; False where another worker holds the delivery by now.

        `pause`: seconds until a failed message is due again, None after the last try.
        """
        with transaction.atomic():
            Attempt.objects.filter(pk=attempt.pk).update(result=sent.word, status=sent.status, duration=duration)
            columns: dict[str, Any] = {"result": sent.word, "busy_until": None}
            if sent.delivered or sent.word == GONE or pause is None:
                status = Delivery.Status.DELIVERED if sent.delivered else Delivery.Status.FAILED
                columns |= {"status": status, "finished_at": Now(), "next_attempt_at": None}
            else:
                columns["next_attempt_at"] = Now() + timedelta(seconds=pause)
            mine = Delivery.objects.filter(pk=self.pk, token=self.token, status=Delivery.Status.PENDING)
            if not mine.update(**columns):
                return False
            self._tell_webhook(sent)
        return True

    def send_again(self, *, by: Actor) -> bool:
        """Send it once more, now, with as many tries as a new one; False if it is pending, or its webhook disabled."""
        with transaction.atomic():
            ended = Delivery.objects.filter(pk=self.pk).exclude(status=Delivery.Status.PENDING)
            told = Webhook.objects.enabled().filter(pk=OuterRef("webhook_id"))
            if not ended.filter(Exists(told)).update(
                status=Delivery.Status.PENDING, tries=0, next_attempt_at=Now(), finished_at=None
            ):
                return False
            self.webhook.say("webhook.resent", by=by, data={"delivery": self.pk, "message": self.message})
        return True

    def _tell_webhook(self, sent: SendResult) -> None:
        """Record since when sending fails; disable a webhook that wants no more, lost its key, or failed for days."""
        hook = Webhook.objects.filter(pk=self.webhook_id)
        if sent.delivered:
            hook.filter(failing_since__isnull=False).update(failing_since=None)
            return
        hook.filter(failing_since__isnull=True).update(failing_since=Now())
        days = timedelta(days=settings.HOLDPOINT_WEBHOOKS_FAILING_DAYS)
        if sent.word == GONE:
            self.webhook.disable(Webhook.Reason.GONE)
        elif sent.word == "secret_lost":
            self.webhook.disable(Webhook.Reason.SECRET_LOST)
        elif hook.filter(failing_since__lt=Now() - days).exists():
            self.webhook.disable(Webhook.Reason.FAILING)


class Attempt(models.Model):
    """One attempt to send a message. Its row is written before it is sent, so that a lost attempt shows too."""

    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="log", db_index=False)
    number = models.IntegerField()
    at = models.DateTimeField(db_default=Now())
    result = models.CharField(max_length=20, default="", blank=True)  # empty: under way
    status = models.IntegerField(null=True)  # of the answer
    duration = models.DurationField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["delivery", "number"], name="attempts_are_counted")]

    def __str__(self) -> str:
        return f"attempt {self.number} of delivery {self.delivery_id}"

    @property
    def took(self) -> str:
        """Return the attempt's duration, as text."""
        return "" if self.duration is None else f"{self.duration.total_seconds():.2f} s"

    @property
    def why(self) -> str:
        """Describe the attempt's result."""
        return words(self.result) if self.result else "On its way."


def words(result: str) -> str:
    """Describe a result code for people."""
    if result.startswith("http_"):
        return f"The receiver answered {result.removeprefix('http_')}."
    return str(WORDS.get(result, ""))
