"""Watches for silent external programs: an event reports one, and its gate's policy may then withdraw the gate.

This gives nobody authority over anything. A program that waits for an outcome asks again within a minute, one that
works renews its lease; one that said that it goes away meanwhile is not missed.
"""

from __future__ import annotations

from datetime import timedelta

import structlog
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from agents.models import Client, Token
from approvals.gates import closing
from approvals.models import Gate
from approvals.models.gate import GateQuerySet
from approvals.presentation.drawing.times import lasting
from checkpoints.actors import SYSTEM
from checkpoints.events import event_log
from checkpoints.models import Run

MISSED = timedelta(seconds=90)  # longer than any request waits
AT_ONCE = 200
log = structlog.get_logger()


def heard(run: Run) -> None:
    """Record that the run's program is present; with an event where it was missed."""
    with transaction.atomic():
        if not Client.objects.heard(run.pk):
            return  # heard of a moment ago, or no program has come yet
        if Client.objects.filter(run=run, missed_at__isnull=False).update(missed_at=None):
            event_log.record("run.heard", subject=f"run:{run.pk}", run=run, by=SYSTEM)


def listens(run: Run, token: Token | None) -> None:
    """Record the run's program as present, if the token is its agent's or the one that it came with."""
    if token is not None and (token.agent or Client.objects.filter(run=run, token=token).exists()):
        heard(run)


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
