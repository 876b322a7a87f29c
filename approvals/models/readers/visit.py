"""Records when a person last looked at a gate, and at which version of its proposal, so that pages say what is new.

Also here: a question to the agent about an open gate. Its words, and the answer's, are texts of events, which may be
erased."""

from __future__ import annotations

import secrets
from datetime import datetime, timedelta
from typing import Any, Self

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from approvals.models.gate import Gate
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


FREE = Q(busy_until__isnull=True) | Q(busy_until__lt=Now())


class AgentQuestionQuerySet(models.QuerySet["AgentQuestion"]):
    """Queries of questions, and the claim of one."""

    def waiting(self) -> Self:
        """Select those without an answer whose gate is still open: nobody needs the others' answers any more."""
        return self.filter(status=AgentQuestion.Status.ASKED, gate__status=Gate.Status.OPEN)

    def idle(self) -> Self:
        """Select those of agents on this server that wait, and that no worker holds, the oldest first."""
        return self.waiting().filter(FREE, gate__run__plan__external=False).order_by("pk")

    def take(self, number: int, *, lease: timedelta) -> AgentQuestion | None:
        """Hold an idle question for so long; None where there is nothing to answer.

        The update itself checks the conditions, so that of two workers the second finds it taken.
        """
        columns: dict[str, Any] = {"token": F("token") + 1, "attempts": F("attempts") + 1, "busy_until": Now() + lease}
        open_ones = self.idle().order_by().filter(pk=number).values("pk")
        if not self.filter(FREE, pk__in=open_ones, status=AgentQuestion.Status.ASKED).update(**columns):
            return None
        return self.select_related("user", "gate__run__plan", "gate__policy__team", "gate__team").get(pk=number)


class AgentQuestion(models.Model):
    """One person's question. Answering changes nothing else, so it may be begun again after a crash."""

    class Status(models.TextChoices):
        # asked -> answered | failed
        ASKED = "asked"
        ANSWERED = "answered"
        FAILED = "failed"

    gate = models.ForeignKey("approvals.Gate", on_delete=models.CASCADE, related_name="questions", db_index=False)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    key = models.CharField(max_length=80)  # of the form that sent it
    status = models.CharField(max_length=8, choices=Status.choices, default=Status.ASKED, db_default=Status.ASKED)
    attempts = models.IntegerField(default=0, db_default=0)
    busy_until = models.DateTimeField(null=True)  # held by a worker until then
    token = models.IntegerField(default=0, db_default=0)  # fencing token of that worker
    asked_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField(null=True)

    objects = AgentQuestionQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["gate", "user", "key"], name="one_question_per_form")]
        indexes = [models.Index(fields=["id"], name="question_waiting", condition=Q(status="asked"))]

    def __str__(self) -> str:
        return f"question {self.pk} at gate {self.gate_id}"

    @staticmethod
    def new_key() -> str:
        """Return a key for a question that no form sent."""
        return secrets.token_hex(16)

    def end(self, status: str, *, token: int | None = None) -> bool:
        """End a question that was asked: the only writer of `status`. False where it has ended before.

        With `token`, only where that worker still holds it. Joins the caller's transaction.
        """
        mine = AgentQuestion.objects.filter(pk=self.pk, status=AgentQuestion.Status.ASKED)
        if token is not None:
            mine = mine.filter(token=token)
        return bool(mine.update(status=status, ended_at=Now(), busy_until=None))
