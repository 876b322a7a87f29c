"""Records who has a gate's page open and in sight: a courtesy to colleagues, which gives no rights."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import models
from django.db.models import F, QuerySet
from django.db.models.functions import Now

from checkpoints.postgresql.prepared_rows import OneOf, prepared_statement
from checkpoints.postgresql.sql import run_sql

from .assignments.claim import lasts

LASTS = timedelta(seconds=40)  # a page renews the record every 15 s

# Raw SQL, as the ORM takes seven statements for it: every page in sight renews its record at each heartbeat.
_LOOK = """
WITH before AS (SELECT gate_id FROM approvals_looking WHERE socket = $1),
claimed AS (
  UPDATE approvals_gateclaim SET until = statement_timestamp() + $5
  WHERE gate_id = $2 AND user_id = $3 AND until > statement_timestamp())
INSERT INTO approvals_looking AS looking (socket, gate_id, user_id, until)
VALUES ($1, $2, $3, statement_timestamp() + $4)
ON CONFLICT (socket) DO UPDATE
SET gate_id = excluded.gate_id, user_id = excluded.user_id, until = excluded.until
RETURNING (SELECT gate_id FROM before), EXISTS (
  SELECT FROM approvals_looking known
  WHERE known.gate_id = $2 AND known.user_id = $3 AND known.until > statement_timestamp()
)
"""


class LookingQuerySet(models.QuerySet["Looking"]):
    """Queries that start, renew and end the record that somebody looks at a gate."""

    def look(self, gate_id: int, *, by: User, socket: str) -> set[int]:
        """Record that this page shows the gate in sight; return the gates whose list of people changes by that.

        The person's own claim of the gate, if it has not lapsed, goes on.
        """
        before, known = run_sql(_LOOK, (socket, gate_id, by.pk, LASTS, lasts()))[0]
        return {before} - {None, gate_id} | (set() if known else {gate_id})

    def away(self, socket: str) -> set[int]:
        """Record that this page shows no gate any more; return the gates that it showed."""
        return {
            gate for (gate,) in run_sql("DELETE FROM approvals_looking WHERE socket = $1 RETURNING gate_id", (socket,))
        }

    def people(self, gates: Collection[int], *, but: Any = None) -> dict[int, list[User]]:
        """Return gate -> the people who look at it now, each once, by name; without the person `but`."""
        by_gate: dict[int, list[User]] = {}
        for each in _at_gates(list(gates), but.pk if but else 0) if gates else ():
            at = by_gate.setdefault(each.gate_id, [])
            if each.user not in at:
                at.append(each.user)
        return by_gate

    def gone(self) -> LookingQuerySet:
        """Select records that pages left behind without ending them."""
        return self.filter(until__lte=Now())


@prepared_statement
def _at_gates(gates: Any, but: Any) -> QuerySet[Looking]:
    found = Looking.objects.filter(OneOf(F("gate_id"), gates), until__gt=Now()).exclude(user=but)
    return found.select_related("user").order_by("user__first_name", "user_id")


class Looking(models.Model):
    """One open page. The table is unlogged, and so empty after a crash of the database."""

    socket = models.CharField(max_length=120, primary_key=True)
    gate = models.ForeignKey("approvals.Gate", on_delete=models.CASCADE, related_name="+")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    until = models.DateTimeField()

    objects = LookingQuerySet.as_manager()

    def __str__(self) -> str:
        return f"user {self.user_id} at gate {self.gate_id}"
