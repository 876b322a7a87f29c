"""The runs that a run started, for the API."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from django.db.models import Count, Prefetch, QuerySet

from agents.models import ChildLink
from agents.session import child_runs
from agents.session.run_path import RunPath
from approvals.models import Gate
from checkpoints.models import Run

OPEN_GATES = Prefetch("run__gates", Gate.objects.open().order_by("pk"), to_attr="open_gates")


def count_for(runs: Iterable[Run]) -> list[Any]:
    """Return these runs, each with its children counted by status as `child_counts`."""
    found: list[Any] = list(runs)
    counted: dict[int, dict[str, int]] = defaultdict(dict)
    rows = ChildLink.objects.filter(parent__in=[run.pk for run in found]).order_by()
    for parent, status, number in rows.values_list("parent_id", "run__status").annotate(Count("pk")):
        counted[parent][status] = number
    for run in found:
        run.child_counts = counted[run.pk]
    return found


def of_run(run: Run, reader: Any) -> QuerySet[ChildLink]:
    """Return the children of a run that this reader may view, newest first, each with its run and its open gates."""
    found = ChildLink.objects.filter(parent=run, run__in=Run.objects.visible_to(reader))
    return found.select_related("run").prefetch_related(OPEN_GATES).order_by("-pk")


def annotate_children(run: Run, rows: QuerySet[ChildLink]) -> list[Any]:
    """Return these rows with the ids of their open gates, and with whether the run's path counts on them."""
    found: list[Any] = list(rows)
    path = RunPath.to(run.head) if run.head and found else RunPath([])
    for row in found:
        row.gates, row.stands = [gate.pk for gate in row.run.open_gates], child_runs.stands(row, path)
    return found
