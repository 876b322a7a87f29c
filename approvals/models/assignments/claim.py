"""Claims: one person says that they are on a gate. A claim gives no rights, and takes none from others."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.contrib.postgres.expressions import ArraySubquery
from django.db import models
from django.db.models import F, OuterRef, QuerySet
from django.db.models.functions import JSONObject, Now


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
