"""Runs that need no program any more: what people refused, or nobody answered in time, ends them here.

A program that waits is told first, and ends its run by claiming it. One that went away may never come back, and its run
would stand in the queue for ever.
"""

from __future__ import annotations

from collections.abc import Collection
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


def waiting(*, but: Collection[int] = ()) -> list[tuple[int, int]]:
    """(run, token) of such runs, but of these."""
    closed = Gate.objects.filter(_REFUSED, run=OuterRef("pk"), checkpoint=OuterRef("head"))
    queued = Run.objects.filter(status=Run.Status.QUEUED, plan__external=True).exclude(pk__in=but)
    found = queued.filter(Exists(closed.filter(closed_at__lt=Now() - PATIENCE)))
    return list(found.order_by("pk").values_list("pk", "token")[:AT_ONCE])


def end(run_id: int) -> bool:
    """Apply what was decided; False where its program has something to do before, such as to take something back.

    Nothing is written then: it is the program's whole turn, and the run would else be claimed and let go of for ever.
    Raises NotVerified.
    """
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
                runner.go_on(slice_of(whole(run_id), claim))
        except (Fenced, HandOut):
            return False
    return True
