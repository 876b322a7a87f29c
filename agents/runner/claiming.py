"""Claims a run for a worker, within the number of its agent's runs that may be at work at once in a team.

For most agents there is no such number, and the run that a doorbell names is claimed. Otherwise the doorbell only says
that there is work: under a lock of the agent and the team, the most urgent run is claimed, and of these the one that
became due first, whichever was named, so that none is passed over by those that come back after each time slice.
"""

from __future__ import annotations

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, IntegerField, Value, When
from django.db.models.functions import Coalesce, Now
from django.db.models.lookups import LessThan

from agents.definition import registry
from agents.ringing import doorbell
from agents.ringing.due import LONG
from checkpoints.models import Run
from checkpoints.models.run import RunQuerySet
from checkpoints.postgresql.sql import run_sql
from checkpoints.store import claims
from checkpoints.store.claims import ClaimedRun

_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('runs at work of ' || $1, $2))"
log = structlog.get_logger()


def claim(run_id: int, *, worker: str) -> ClaimedRun | None:
    """Claim the run, or the one whose turn it is; None where it cannot be claimed, or as many as may are at work."""
    limited = {plan: known.agent.at_once for plan, known in registry.plans().items() if known.agent.at_once}
    if limited and (found := Run.objects.select_related("plan").filter(pk=run_id, plan__in=limited).first()):
        return _within(found, limited[found.plan_id], list(limited), worker)
    return claims.claim(run_id, plan_ids=list(registry.plans()), worker=worker, lease=settings.HOLDPOINT_LEASE)


def let_next(run: Run) -> None:
    """Ring for a run of the same agent and team that waits for its turn, if their number is limited."""
    known = registry.plans().get(run.plan_id)
    if known is None or not known.agent.at_once:
        return
    queued = _queued(known.spec.agent, run.team_id).select_related("plan")
    waiting = queued.filter(plan__in=registry.plans()).first() or queued.first()  # of others no worker may be there
    if waiting is not None:
        doorbell.ring(waiting.pk, registry.queue_for(waiting.plan), waiting.priority)


def _within(named: Run, most: int, plans: list[int], worker: str) -> ClaimedRun | None:
    agent, team = named.plan.agent, named.team_id
    with transaction.atomic():
        if not _has_room(named, most):
            return None
        lost = Run.objects.due().filter(pk=named.pk, status=Run.Status.RUNNING)
        turn = lost.first() or _queued(agent, team).filter(plan__in=plans).first()
        if turn is None:
            return None
        return claims.claim(turn.pk, plan_ids=plans, worker=worker, lease=settings.HOLDPOINT_LEASE)


def claim_older(run: Run, most: int, *, worker: str) -> ClaimedRun | None:
    """Claim a run of a version that is gone, to upgrade it; `most`: of the new version, as many may be at work."""
    with transaction.atomic():
        if most and not _has_room(run, most):
            return None
        return claims.claim(run.pk, plan_ids=[run.plan_id], worker=worker, lease=settings.HOLDPOINT_LEASE)


def _has_room(named: Run, most: int) -> bool:
    """Tell, under the lock of the agent and the team, whether another of their runs may be at work."""
    agent, team = named.plan.agent, named.team_id
    run_sql(_LOCK, [agent, team])
    working = Run.objects.filter(plan__agent=agent, team=team, status=Run.Status.RUNNING, lease_until__gt=Now())
    if working.count() < most:
        return True
    log.info("run.waits_for_its_turn", run=named.pk, agent=agent, at_work=most)
    return False


def _queued(agent: str, team: int) -> RunQuerySet:
    """Return the queued runs that are due: the most urgent at the head, and of these the one that became so first.

    One that has been due for long counts as most urgent.
    """
    due = Run.objects.due().filter(status=Run.Status.QUEUED, plan__agent=agent, team=team)
    since = Coalesce("wake_at", "created_at")
    urgency = Case(
        When(LessThan(since, Now() - Value(LONG)), then=Value(0)), default=F("priority"), output_field=IntegerField()
    )
    return due.order_by(urgency, since, "pk")
