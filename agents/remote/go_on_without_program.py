"""Takes external runs further whose program may never come back.

A run ends whose gate was rejected, expired or withdrawn, or that is a posted gate with nothing left to do: its program
may be first for some seconds, but after that the run would stay in the queue for ever. And where a program vanished in
the middle of an effect, people are asked about the effect's result as soon as its lease is over. Neither waits for
somebody to claim the run.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q
from django.db.models.functions import Now

from agents.models import Client, Effect
from agents.runner import engine
from agents.session.run_path import RunPath
from approvals.models import Gate, Grant, Outcome
from checkpoints.actors import SYSTEM
from checkpoints.errors import Fenced
from checkpoints.models import Run
from checkpoints.runs.plans import spec_of
from checkpoints.store import claims

from . import implied_plan
from .reach import load_run
from .session_cache import SESSIONS, claim_run, session_of

PATIENCE = timedelta(seconds=5)  # the time in which the program may be first
AT_ONCE = 100
NAMED = "Holdpoint"  # the worker's name in the claim
_REFUSED = Q(outcome__kind=Outcome.Kind.REJECTED, outcome__then="stop") | Q(
    outcome__kind__in=(Outcome.Kind.EXPIRED, Outcome.Kind.WITHDRAWN)
)


def waiting(*, but: Collection[int] = ()) -> list[tuple[int, int]]:
    """Return (run, token) of such runs, except `but`."""
    granted = Exists(Grant.objects.filter(outcome__gate=OuterRef("pk")))
    nothing_left = Q(~granted, status=Gate.Status.DECIDED, run__plan__version__startswith=implied_plan.VERSION)
    closed = Gate.objects.filter(_REFUSED | nothing_left, run=OuterRef("pk"), checkpoint=OuterRef("head"))
    begun = Effect.objects.filter(run=OuterRef("pk"), status=Effect.Status.INTENDED)
    over = Q(Exists(closed.filter(closed_at__lt=Now() - PATIENCE)), status=Run.Status.QUEUED) | Q(pk__in=_refused())
    vanished = Q(Exists(begun), status=Run.Status.RUNNING, lease_until__lt=Now())
    found = Run.objects.filter(over | vanished, plan__external=True).exclude(pk__in=but)
    return list(found.order_by("pk").values_list("pk", "token")[:AT_ONCE])


def _refused() -> list[int]:
    """Return queued runs of which a gate from which they went on was refused, so that they end."""
    queued = Gate.objects.filter(_REFUSED, run__status=Run.Status.QUEUED, run__plan__external=True)
    old = queued.filter(closed_at__lt=Now() - PATIENCE).exclude(checkpoint=F("run__head")).select_related("run__plan")
    beside = [gate for gate in old.order_by("-pk")[:AT_ONCE] if spec_of(gate.run.plan).goes_on_asking]
    return [gate.run_id for gate in beside if gate.run.head and gate.checkpoint in RunPath.to(gate.run.head).asking()]


def go_on(run_id: int) -> bool:
    """Take the run as far as it goes; return False where its program has something to do before.

    Nothing is written then, for instance where an effect may be sent again under its key, or is to be undone: that is
    the program's turn, and the run would otherwise be claimed and released for ever. Gates that it opens are asked on
    behalf of the program's owner. Raises NotVerified.
    """
    with SESSIONS.alone(run_id):
        SESSIONS.take(run_id)
        try:
            with transaction.atomic():
                claim = claim_run(load_run(run_id), worker=NAMED, lease=claims.TAKE_OVER_LEASE, by=SYSTEM)
                if claim is None:
                    return False
                owner = Client.objects.filter(run=run_id).values_list("owner", flat=True).first()
                session = session_of(claim, owner)
                engine.go_on(session)
                if session.handed_out:
                    transaction.set_rollback(True)
                    return False
        except Fenced:
            return False
    return True
