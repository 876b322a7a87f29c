"""Runs that need no program any more: what people refused, or nobody answered in time, ends them here.

A program that waits is told first, and ends its run by claiming it. One that went away may never come back, and its run
would stand in the queue for ever.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now

from approvals.models import Gate, Outcome
from checkpoints import claims
from checkpoints.actors import SYSTEM
from checkpoints.errors import Fenced
from checkpoints.models import Run

from .. import runner
from .desk import DESK, slice_of
from .handing import HandOut
from .reach import whole

PATIENCE = timedelta(seconds=5)  # in which the program may be first
AT_ONCE = 100
NAMED = "Holdpoint"  # as whom it is claimed
_REFUSED = Q(outcome__kind=Outcome.Kind.REJECTED, outcome__then="stop") | Q(
    outcome__kind__in=(Outcome.Kind.EXPIRED, Outcome.Kind.WITHDRAWN)
)


def end() -> int:
    """End such runs; how many there were."""
    closed = Gate.objects.filter(_REFUSED, run=OuterRef("pk"), checkpoint=OuterRef("head"))
    queued = Run.objects.filter(status=Run.Status.QUEUED, plan__external=True)
    found = queued.filter(Exists(closed.filter(closed_at__lt=Now() - PATIENCE))).values_list("pk", flat=True)
    return sum(_ended(run_id) for run_id in list(found[:AT_ONCE]))


def _ended(run_id: int) -> bool:
    """Apply what was decided; what its program has still to do, such as to take something back, waits for it."""
    with DESK.alone(run_id):
        DESK.take(run_id)
        try:
            with transaction.atomic():
                run = whole(run_id)
                claim = claims.claim(
                    run_id, plan_ids=[run.plan_id], worker=NAMED, lease=claims.TAKE_OVER_LEASE, by=SYSTEM
                )
                if claim is None:
                    return False
                try:
                    runner.go_on(slice_of(whole(run_id), claim))
                except HandOut:
                    claims.release(claim, status=Run.Status.QUEUED, by=SYSTEM, attempts=0)
        except Fenced:
            return False
    return True
