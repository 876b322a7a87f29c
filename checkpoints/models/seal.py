"""Seals, which reveal events that were altered, removed or inserted later, and verifications of them.

People order a verification; any worker does it, slice by slice.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import IntegrityError, models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.seals.leaves import IntegrityProblem
from checkpoints.values.canonical_json import decode_canonical, encode_canonical


class Seal(models.Model):
    """Covers a range of committed events, and the seal before it."""

    at = models.DateTimeField()  # the database's clock
    first_xid = models.BigIntegerField()
    first_id = models.BigIntegerField()
    last_xid = models.BigIntegerField()
    last_id = models.BigIntegerField()
    count = models.IntegerField()
    merkle_root = models.BinaryField()
    marks = models.BinaryField()  # one per event, so that a wrong event can be named; see seals.leaves
    heads = models.BinaryField()  # canonical JSON: run id -> [number, digest] of its head
    previous = models.BinaryField(null=True)
    digest = models.BinaryField()  # HMAC-SHA-256 where a key is set, else SHA-256

    class Meta:
        constraints = [models.UniqueConstraint(fields=["previous"], nulls_distinct=False, name="seals_form_one_chain")]
        indexes = [
            models.Index("last_xid", "last_id", name="seal_by_place"),
            models.Index("at", name="seal_by_time"),
        ]

    def __str__(self) -> str:
        return f"seal {self.pk}"


SHOWN = 100  # findings that are kept; all are counted
LEASE = timedelta(seconds=60)


class VerificationQuerySet(models.QuerySet["Verification"]):
    """Queries on verifications; orders one."""

    def underway(self) -> VerificationQuerySet:
        """Return the verification that has not ended, if any."""
        return self.filter(status=Verification.Status.UNDERWAY)

    def idle(self) -> VerificationQuerySet:
        """Return the verification that is under way and that no worker has claimed."""
        return self.underway().filter(Q(busy_until__isnull=True) | Q(busy_until__lt=Now()))

    def ask(self, *, by: Actor) -> Verification:
        """Order a verification; return the one under way if there is one."""
        try:
            with transaction.atomic():
                return self.create(by=by.id, by_name=by.name)
        except IntegrityError:
            return self.underway().first() or self.ask(by=by)


class Verification(models.Model):
    """One check of all seals against the events. The event `audit.verified` records the outcome for good."""

    class Status(models.TextChoices):
        # underway -> passed | failed
        UNDERWAY = "underway", "Under way"
        PASSED = "passed", "Passed"
        FAILED = "failed", "Failed"

    status = models.CharField(max_length=8, choices=Status.choices, default=Status.UNDERWAY)
    by = models.CharField(max_length=120)  # an actor's id; beside it their name
    by_name = models.CharField(max_length=150, default="")
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True)
    busy_until = models.DateTimeField(null=True)  # the end of a worker's lease
    token = models.IntegerField(default=0)  # the fencing token of that worker
    seals = models.IntegerField(default=0)  # checked so far
    of = models.IntegerField(default=0)  # how many will be
    events = models.BigIntegerField(default=0)
    faults = models.IntegerField(default=0)
    findings = models.BinaryField(default=b"[]")  # canonical JSON: the first [subject, reason]
    place = models.BinaryField(default=b"{}")  # canonical JSON: audit.database.VerificationWalk

    objects = VerificationQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["status"], condition=Q(status="underway"), name="one_verification_at_a_time"
            )
        ]

    def __str__(self) -> str:
        return f"verification {self.pk}"

    def take(self) -> bool:
        """Claim the verification for a slice; False if it has ended, or another worker has it."""
        taken = Verification.objects.idle().filter(pk=self.pk).update(token=F("token") + 1, busy_until=Now() + LEASE)
        if taken:
            self.refresh_from_db()
        return bool(taken)

    def put_down(self, place: dict[str, Any], problems: list[IntegrityProblem], *, total: int) -> bool:
        """Store a slice's findings, and where the next slice continues; False if another worker has taken over."""
        return bool(self._mine().update(**self._progress_columns(place, problems), of=total, busy_until=None))

    def end(self, place: dict[str, Any], problems: list[IntegrityProblem]) -> bool:
        """Record the outcome, in the audit too; False if another worker has taken over."""
        kept = self._progress_columns(place, problems)
        status = Verification.Status.FAILED if kept["faults"] else Verification.Status.PASSED
        with transaction.atomic():
            if not self._mine().update(**kept, of=kept["seals"], status=status, finished_at=Now(), busy_until=None):
                return False
            data = {name: kept[name] for name in ("seals", "events", "faults")} | {"upto": place.get("upto", 0)}
            event_log.record(
                "audit.verified", subject=f"verification:{self.pk}", by=Actor(self.by, self.by_name), data=data
            )  # fmt: skip
        return True

    def problems(self) -> list[IntegrityProblem]:
        """Return the first findings, up to SHOWN."""
        return [IntegrityProblem(*item) for item in decode_canonical(bytes(self.findings))]

    def _mine(self) -> VerificationQuerySet:
        return Verification.objects.underway().filter(pk=self.pk, token=self.token)

    def _progress_columns(self, place: dict[str, Any], problems: list[IntegrityProblem]) -> dict[str, Any]:
        shown = [list(problem) for problem in (*self.problems(), *problems)][:SHOWN]
        return {
            "place": encode_canonical(place),
            "seals": place.get("seals", 0),
            "events": place.get("events", 0),
            "faults": self.faults + len(problems),
            "findings": encode_canonical(shown),
        }
