"""Claims: one person says that they are on a gate. A claim gives no rights, and takes none from others.

Also here: escalations that a gate's policy plans: when, and to which team.

Also here: statements that end rows of the desk with a gate, or with a vote at it.
"""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.postgres.expressions import ArraySubquery
from django.db import models
from django.db.models import F, OuterRef, Q, QuerySet
from django.db.models.functions import JSONObject, Now
from psycopg.types.numeric import Int8

from checkpoints.postgresql.sql import Statement


def lasts() -> timedelta:
    """Return how long a claim lasts after its holder last had the gate's page in sight."""
    return timedelta(minutes=settings.HOLDPOINT_CLAIM_MINUTES)


class ClaimQuerySet(models.QuerySet["GateClaim"]):
    """Queries of claims."""

    def live(self) -> ClaimQuerySet:
        """Select those that have not lapsed, by the database's clock."""
        return self.filter(until__gt=Now())

    def lapsed(self) -> ClaimQuerySet:
        """Select those whose holder has been away for too long, the longest first."""
        return self.filter(until__lte=Now()).order_by("until")


class GateClaim(models.Model):
    """Somebody's claim of a gate. Made and ended by approvals.assignments.claims alone; the row goes with its end.

    While its holder has the gate's page in sight, `until` moves on by itself, see approvals.models.looking.
    """

    # none -> held -> released | taken over | lapsed; held by the one row that a gate has
    gate = models.OneToOneField("approvals.Gate", on_delete=models.CASCADE, related_name="claim", primary_key=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="claims")
    since = models.DateTimeField(db_default=Now())
    until = models.DateTimeField()

    objects = ClaimQuerySet.as_manager()

    def __str__(self) -> str:
        return f"gate {self.gate_id}, claimed by user {self.user_id}"


def holders(gate: str) -> ArraySubquery:
    """Return an annotation: the live claim of the gate in column `gate` with its holder's names, in a list, or []."""
    holder = JSONObject(
        id=F("user_id"), username=F("user__username"), first_name=F("user__first_name"),
        last_name=F("user__last_name"), since=F("since"),
    )  # fmt: skip
    found: QuerySet[GateClaim] = GateClaim.objects.live().filter(gate=OuterRef(gate))
    return ArraySubquery(found.values(holder=holder))


class EscalationQuerySet(models.QuerySet["Escalation"]):
    """Queries of planned escalations."""

    def due(self) -> EscalationQuerySet:
        """Select those whose time has come, by the database's clock, the longest due first."""
        return self.filter(status=Escalation.Status.PLANNED, due_at__lte=Now()).order_by("due_at")

    def at_deadline(self) -> EscalationQuerySet:
        """Select those that wait for their gates' deadlines, the next level first."""
        return self.filter(status=Escalation.Status.PLANNED, due_at=None).order_by("number")


class Escalation(models.Model):
    """One level of one gate's escalation: its team joins the reviewers. Written by `assignments.reassigning`."""

    class Status(models.TextChoices):
        # planned -> done | dropped
        PLANNED = "planned", "Planned"
        DONE = "done", "Done"
        DROPPED = "dropped", "Not needed"

    gate = models.ForeignKey("approvals.Gate", on_delete=models.CASCADE, related_name="escalations", db_index=False)
    number = models.PositiveSmallIntegerField()  # from 1
    team = models.ForeignKey(Group, on_delete=models.CASCADE, related_name="+")
    due_at = models.DateTimeField(null=True)  # null: at the gate's deadline
    extend = models.DurationField(null=True)  # of a level at the deadline: for how long it moves that
    status = models.CharField(max_length=7, choices=Status.choices, default=Status.PLANNED)
    planned_at = models.DateTimeField(db_default=Now())

    objects = EscalationQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["gate", "number"], name="escalation_level_is_planned_once")]
        indexes = [models.Index("due_at", name="escalation_due", condition=Q(status="planned", due_at__isnull=False))]

    def __str__(self) -> str:
        return f"level {self.number} of gate {self.gate_id}"


_ENDS = (
    "DELETE FROM approvals_gateclaim WHERE gate_id = $1",
    "UPDATE approvals_addedteam SET open = false WHERE gate_id = $1 AND open",
    "UPDATE approvals_escalation SET status = 'dropped' WHERE gate_id = $1 AND status = 'planned'",
)
_VOTED = "DELETE FROM approvals_gateclaim WHERE gate_id = $1 AND user_id = $2"


def with_gate(gate: int) -> list[Statement]:
    """Return the statements that end the gate's claim, its place in queues of added teams, and its escalation."""
    return [(each, [Int8(gate)]) for each in _ENDS]


def with_vote(gate: int, *, by: int) -> list[Statement]:
    """Return the statement that ends the voter's own claim."""
    return [(_VOTED, [Int8(gate), Int8(by)])]
