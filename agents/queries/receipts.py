"""Reads what was performed under the grants of an approval, from the ledger of effects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery

from agents.models import Effect
from approvals.consequences.performed import PerformedEffect
from checkpoints.postgresql.prepared_rows import OneOf, prepared


def performed(grants: Sequence[int]) -> list[PerformedEffect]:
    """List the effects that were begun under these grants, with the newest undo of each. One statement."""
    rows: list[Any] = _under(list(grants))
    return [
        PerformedEffect(
            grant=row.grant_id, status=row.status, key=row.key, begun_at=row.intended_at, ended_at=row.settled_at,
            attempts=row.attempts, error=row.error, result=row.returned, undo=row.undo_status or "",
            undone_at=row.undo_at,
        )
        for row in rows
    ]  # fmt: skip


@prepared
def _under(grants: Any) -> QuerySet[Effect]:
    undos = Effect.objects.filter(undoes=OuterRef("pk")).order_by("-pk")
    found = Effect.objects.filter(OneOf(F("grant_id"), grants)).order_by("pk")
    rows: QuerySet[Effect] = found.annotate(
        undo_status=Subquery(undos.values("status")[:1]), undo_at=Subquery(undos.values("settled_at")[:1])
    )
    return rows
