"""Reads the gates of a lineage for an impact, in one statement, with proposals only where they are needed."""

from __future__ import annotations

from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, F, OuterRef, QuerySet, When
from django.db.models.functions import JSONObject

from approvals.models import Gate, Grant, Outcome
from checkpoints.models import Run
from checkpoints.postgresql.prepared_rows import prepared_statement


@prepared_statement
def of_lineage(lineage: Any) -> QuerySet[Any]:
    """List every gate of a run and its forks, oldest first, each with its run and its outcome.

    `granted`: its grants, as {"id", "action", "effect"}. `decided`: the body of the proposal that was decided on action
    by action; None where it was not.
    """
    grants = Grant.objects.filter(outcome=OuterRef("outcome__pk")).order_by("pk")
    granted = ArraySubquery(grants.values(one=JSONObject(id="pk", action="action", effect="effect")))
    decided = Case(When(outcome__kind=Outcome.Kind.MIXED, then=F("outcome__proposal__body")), default=None)
    found = Gate.objects.filter(run__in=Run.objects.of_lineage(lineage)).select_related("run", "outcome")
    return found.order_by("pk").annotate(granted=granted, decided=decided)
