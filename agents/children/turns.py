"""The turns of a run's children: only so many of them are at work at once, and the others are held.

A child that waits for a person, a signal or a time is not at work. When one stops working its worker lets the next go;
what a crash dropped the sweeper does.
"""

from __future__ import annotations

from django.db import transaction

from agents.definition import registry
from agents.definition.agent import Agent
from agents.models import ChildLink
from agents.ringing import doorbell
from checkpoints import crash_points
from checkpoints.actors import SYSTEM
from checkpoints.models import Plan, Run
from checkpoints.postgresql.sql import run_sql

_WORKING = """
SELECT count(*) FROM (
  SELECT FROM checkpoints_run WHERE parent_id = $1 AND status IN ('queued', 'running') LIMIT $2) working
"""
_LOCK = "SELECT pg_advisory_xact_lock(hashint8($1), 1)"
_PARENT = """
SELECT p.status = 'queued', p.plan_id, p.priority, EXISTS (SELECT FROM agents_childlink WHERE parent_id = p.id AND held)
FROM checkpoints_run p WHERE p.id = $1
"""


def working(parent: int, most: int) -> int:
    """Count the children that are queued or running, up to `most`."""
    return int(run_sql(_WORKING, [parent, most])[0][0])


def lock(parent: int) -> None:
    """Have no other child of the run counted, or let go, in this transaction. Take it before any row's lock."""
    run_sql(_LOCK, [parent])


def stopped(parent: int) -> None:
    """Ring for a parent that its child has woken, and let the next child go. Call it after a child's turn, or end."""
    for queued, plan, priority, held in run_sql(_PARENT, [parent]):
        if queued:
            doorbell.ring(parent, registry.queue_for(Plan.objects.get(pk=plan)), priority)
        if held:
            let_go(parent)


def holding(limit: int, *, after: int = 0) -> list[int]:
    """Return the runs, from the number `after` on, that have held children."""
    held = ChildLink.objects.filter(held=True, parent__gt=after).order_by("parent")
    return list(held.values_list("parent_id", flat=True).distinct()[:limit])


def let_go(parent: int) -> int:
    """Queue as many of the parent's held children as may work beside the others, oldest first; return how many.

    One at a time for each parent: of two that count at once, each would let a child go.
    """
    with transaction.atomic():
        lock(parent)
        most = at_once(Run.objects.values_list("plan_id", flat=True).get(pk=parent))
        free = most - working(parent, most)
        held = ChildLink.objects.filter(parent=parent, held=True).order_by("pk").select_related("run__plan")
        went, seen = 0, list[int]()
        while went < free and (found := list(held.exclude(pk__in=seen)[: free - went])):
            seen += [row.pk for row in found]
            went += sum(_goes(row.run) for row in found)
        if seen:
            crash_points.point("before_let_go")
        ChildLink.objects.filter(pk__in=seen).update(held=False)  # last, as children's rows come first
    return went


def _goes(run: Run) -> bool:
    """Queue a held run; False where a person has moved or cancelled it meanwhile, so that it is held no more."""
    return run.status == Run.Status.WAITING and run.token == 0 and run.wake(by=SYSTEM)


def at_once(plan_id: int) -> int:
    """Return how many children of a run of this plan work at once; the default for one whose code is not here."""
    known = registry.known_plans().get(plan_id)
    return (known.agent if known else Agent).children_at_once
