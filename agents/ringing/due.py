"""Finds the runs that are due for a worker, by the queue on which to ring for them.

The room in each queue is measured before any run is picked. The queue of a version that nobody serves stays full while
its runs are due; if runs were picked by age alone, two hundred of them could fill every pass and hide all later runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import redis
import structlog
from django.db import transaction
from django.db.models import Min, OuterRef, Q, Subquery, Value
from django.db.models.functions import Coalesce, Now

from agents.definition import registry
from checkpoints.models import Plan, Run
from checkpoints.models.run import RunQuerySet

from . import doorbell

NOT_QUIET = """NOT EXISTS (
    SELECT FROM unnest(%s::bigint[], %s::bigint[]) AS quiet (run, token)
    WHERE quiet.run = checkpoints_run.id AND quiet.token = checkpoints_run.token)"""
log = structlog.get_logger()


LONG = timedelta(minutes=5)  # for which a run may be due before its turn comes whatever its priority


class QueueRoom(NamedTuple):
    """A queue with room for `free` more messages about due runs of these plans."""

    queue: str
    plans: list[int]
    free: int


def rooms(most: int) -> list[QueueRoom]:
    """Return each queue that has more due runs than waiting messages, the one with the least room first.

    At most `most` are counted beyond the waiting ones. Where Redis does not answer no message counts as waiting.
    """
    plans: dict[str, list[int]] = defaultdict(list)
    subquery = Subquery(
        _due().filter(plan=OuterRef("pk")).values("pk")[:1]
    )  # EXISTS would be joined with all that are due
    for plan in (
        Plan.objects.alias(due=subquery).filter(due__isnull=False, external=False).only("agent", "version", "external")
    ):
        plans[registry.queue_for(plan)].append(plan.pk)
    held = _count_waiting(plans)
    found = []
    for queue, of in plans.items():
        number = _due().filter(plan__in=of)[: held.get(queue, 0) + most].count()
        found.append(QueueRoom(queue, of, number - held.get(queue, 0)))
    return sorted((room for room in found if room.free > 0), key=lambda room: room.free)


def first(room: QueueRoom, *, but: Sequence[tuple[int, int]], most: int) -> list[tuple[int, int, int]]:
    """Return (run, token, priority) of the runs to ring for in this queue, without those in `but`.

    Runs of a lost worker come first, since no message names them; then the most urgent. A run whose row is locked is
    left out.
    """
    pairs = [[run for run, _ in but], [token for _, token in but]]
    found: list[tuple[int, int, int]] = []
    with transaction.atomic():
        for status in (Run.Status.RUNNING, Run.Status.QUEUED):
            runs = _due().filter(status=status, plan__in=room.plans).order_by("priority", "pk")
            runs = runs.select_for_update(skip_locked=True)
            loud = runs.extra(where=[NOT_QUIET], params=pairs)  # noqa: S610 - a constant; the pairs are parameters
            found += loud.values_list("pk", "token", "priority")[: min(room.free, most) - len(found)]
    return found


def kept_waiting(*, but: Sequence[tuple[int, int]], most: int) -> list[tuple[int, int, str]]:
    """Return (run, token, queue) of runs that have been due for LONG while more urgent ones were taken, without `but`.

    They are rung for as urgent, so that no stream of urgent runs keeps them waiting for ever. Where as many messages
    wait in a queue's urgent list as are rung for in a pass, none is returned for it.
    """
    at_work = Run.objects.filter(status__in=[Run.Status.QUEUED, Run.Status.RUNNING], plan__external=False)
    urgent = at_work.aggregate(least=Min("priority"))["least"]
    less = next((step for step in doorbell.STEPS if urgent is not None and step > urgent), None)
    if less is None:
        return []
    since = Now() - Value(LONG)
    long = Q(status=Run.Status.QUEUED, since__lte=since) | Q(status=Run.Status.RUNNING, lease_until__lte=since)
    runs = _due().alias(since=Coalesce("wake_at", "created_at")).filter(long, priority__gte=less)
    quiet = [[run for run, _ in but], [token for _, token in but]]
    loud = runs.extra(where=[NOT_QUIET], params=quiet)  # noqa: S610 - a constant; the pairs are parameters
    found = [
        (run.pk, run.token, registry.queue_for(run.plan))
        for run in loud.select_related("plan").order_by("pk")[:most]
        if not run.plan.external
    ]
    full = {queue for queue in {queue for _, _, queue in found} if _urgent_waiting(queue) >= most}
    return [item for item in found if item[2] not in full]


def _urgent_waiting(queue: str) -> int:
    try:
        length: Any = doorbell.client().llen(doorbell.key(queue, 0))
    except redis.RedisError as error:
        log.warning("redis.silent", error=str(error))
        return 0
    return int(length)


def _due() -> RunQuerySet:
    """Return the due runs, but none that wait for a timer, unordered; the statuses are those of the index."""
    return Run.objects.due().filter(status__in=[Run.Status.QUEUED, Run.Status.RUNNING]).order_by()


def _count_waiting(names: dict[str, list[int]]) -> dict[str, int]:
    try:
        return doorbell.waiting(names)
    except redis.RedisError as error:
        log.warning("redis.silent", error=str(error))
        return {}
