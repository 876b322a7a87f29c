"""Records when a person last looked at a gate, and at which version of its proposal, so that pages say what is new."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models

from checkpoints.postgresql.sql import run_sql

# Raw SQL for the conflict's case: the version looked at before stays known while the newer one is looked at.
_LOOK = """
INSERT INTO approvals_gatevisit AS visit (gate_id, user_id, proposal, at)
SELECT id, $2, least($3, proposal), statement_timestamp() FROM approvals_gate WHERE id = $1
ON CONFLICT (gate_id, user_id) DO UPDATE SET at = excluded.at, proposal = excluded.proposal,
  before = CASE WHEN excluded.proposal > visit.proposal THEN visit.proposal ELSE visit.before END,
  before_at = CASE WHEN excluded.proposal > visit.proposal THEN visit.at ELSE visit.before_at END
WHERE visit.proposal <= excluded.proposal
"""


class GateVisitQuerySet(models.QuerySet["GateVisit"]):
    """The query that records a look."""

    def look(self, gate_id: int, *, by: User, proposal: int) -> None:
        """Record that this person has this version of the gate's proposal in sight; an older tab changes nothing."""
        run_sql(_LOOK, [gate_id, by.pk, proposal])


class GateVisit(models.Model):
    """One person's last look at one gate. Private, and without events."""

    gate = models.ForeignKey("approvals.Gate", on_delete=models.CASCADE, related_name="visits", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    proposal = models.IntegerField()  # the newest version that was on their screen
    at = models.DateTimeField()
    before = models.IntegerField(null=True)  # the version that they saw last before that one
    before_at = models.DateTimeField(null=True)

    objects = GateVisitQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["gate", "user"], name="one_visit_per_person_and_gate")]

    def __str__(self) -> str:
        return f"visit of user {self.user_id} to gate {self.gate_id}"

    def seen_before(self, current: int) -> tuple[int, datetime] | None:
        """Return (version, when) of the version that they saw last before the `current` one; None for none."""
        if self.proposal < current:
            return self.proposal, self.at
        found: tuple[Any, Any] = (self.before, self.before_at)
        return None if None in found else found
