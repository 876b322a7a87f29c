"""Programs that stay away: an event reports a silent one, its gate's policy may withdraw the gate, its runs may end.

To miss a program gives nobody authority over anything. A program that waits for an outcome asks again within a minute,
one that works renews its lease; one that said that it goes away meanwhile is not missed.

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
from approvals.gates import closing
from approvals.models import Gate, Grant, Outcome
from approvals.models.gate import GateQuerySet
from approvals.presentation.drawing.times import lasting
from checkpoints.actors import SYSTEM
from checkpoints.errors import Fenced
from checkpoints.events import event_log
from checkpoints.models import Run
from checkpoints.runs.plans import spec_of
from checkpoints.store import claims

from . import post_gate
from .reach import MISSED, load_run
from .session_cache import SESSIONS, claim_run, session_of

AT_ONCE = 200  # silent programs that are missed
PATIENCE = timedelta(seconds=5)  # the time in which the program may be first
MOST = 100  # runs that are found
NAMED = "Holdpoint"  # the worker's name in the claim
_REFUSED = Q(outcome__kind=Outcome.Kind.REJECTED, outcome__then="stop") | Q(
    outcome__kind__in=(Outcome.Kind.EXPIRED, Outcome.Kind.WITHDRAWN)
)


def miss() -> int:
    """Mark each program that is silent for MISSED as missed; return how many of their runs live."""
    with transaction.atomic():
        silent = Client.objects.filter(deferred=False, missed_at__isnull=True, heard_at__lt=Now() - MISSED)
        found = list(silent.select_related("run").select_for_update(skip_locked=True, of=("self",))[:AT_ONCE])
        Client.objects.filter(pk__in=[client.pk for client in found]).update(missed_at=Now())
        Client.objects.missed().exclude(run__status__in=Run.LIVE).delete()  # a program that returns is added again
        live = [client.run for client in found if client.run.status in Run.LIVE]
        event_log.append_events(
            [event_log.Entry(kind="run.missed", subject=f"run:{run.pk}", run=run, by=SYSTEM) for run in live]
        )
    return len(live)


def forsaken() -> GateQuerySet:
    """Return the open gates whose program has sent nothing for as long as their policy allows."""
    silent = Q(run__client__in=Client.objects.missed(), run__client__heard_at__lt=Now() - F("policy__withdraw_after"))
    gates = Gate.objects.open().filter(silent, policy__withdraw_after__isnull=False)
    return gates.select_related("run", "policy")


def withdraw(gate: Gate) -> bool:
    """Withdraw such a gate; return False if its program has just been heard of."""
    after = gate.policy.withdraw_after
    if after is None:
        return False
    with transaction.atomic():
        silent = Client.objects.select_for_update().filter(run=gate.run_id, deferred=False, heard_at__lt=Now() - after)
        if not silent.exists():
            return False
        reason = f"The external program has sent nothing for {lasting(after)}."
        return closing.withdraw(gate, by=SYSTEM, reason=reason) is not None


def waiting(*, but: Collection[int] = ()) -> list[tuple[int, int]]:
    """Return (run, token) of such runs, except `but`."""
    granted = Exists(Grant.objects.filter(outcome__gate=OuterRef("pk")))
    nothing_left = Q(~granted, status=Gate.Status.DECIDED, run__plan__version__startswith=post_gate.VERSION)
    closed = Gate.objects.filter(_REFUSED | nothing_left, run=OuterRef("pk"), checkpoint=OuterRef("head"))
    begun = Effect.objects.filter(run=OuterRef("pk"), status=Effect.Status.INTENDED)
    over = Q(Exists(closed.filter(closed_at__lt=Now() - PATIENCE)), status=Run.Status.QUEUED) | Q(pk__in=_refused())
    vanished = Q(Exists(begun), status=Run.Status.RUNNING, lease_until__lt=Now())
    found = Run.objects.filter(over | vanished, plan__external=True).exclude(pk__in=but)
    return list(found.order_by("pk").values_list("pk", "token")[:MOST])


def _refused() -> list[int]:
    """Return queued runs of which a gate from which they went on was refused, so that they end."""
    queued = Gate.objects.filter(_REFUSED, run__status=Run.Status.QUEUED, run__plan__external=True)
    old = queued.filter(closed_at__lt=Now() - PATIENCE).exclude(checkpoint=F("run__head")).select_related("run__plan")
    beside = [gate for gate in old.order_by("-pk")[:MOST] if spec_of(gate.run.plan).goes_on_asking]
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
