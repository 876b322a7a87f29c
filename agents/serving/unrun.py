"""The sweeper's part for approved gates: it tells people of those of which nothing has begun, and says why.

A gate that lets effects run leaves a row as it closes, to be looked at some minutes later. By then one of its effects
has usually begun, and the row goes. Where none has, people are told once, and the row is looked at again until
something has begun, or a person has moved or ended the run. A run that waits by its own plan, for a time, a signal or
its children, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from agents.serving import missing_workers
from approvals.consequences.performed import NotRun
from approvals.models import Gate, Unrun
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql

AGAIN = timedelta(seconds=5)  # between two looks at one that people are told of
# Whether an effect of it has begun; and whether none will: the run ended or was moved, or the same was asked again.
_LOOK = """
SELECT u.gate_id, u.raised_at IS NOT NULL,
  EXISTS (SELECT FROM approvals_outcome o JOIN approvals_grant t ON t.outcome_id = o.id
    JOIN agents_effect e ON e.grant_id = t.id WHERE o.gate_id = g.id),
  r.status IN ('completed', 'cancelled')
    OR EXISTS (SELECT FROM approvals_gate a WHERE a.run_id = g.run_id AND a.step = g.step AND a.id > g.id)
    OR EXISTS (SELECT FROM checkpoints_checkpoint c WHERE c.run_id = g.run_id AND c.kind IN ('rewind', 'edit')
      AND c.at > g.closed_at)
FROM approvals_unrun u JOIN approvals_gate g ON g.id = u.gate_id JOIN checkpoints_run r ON r.id = g.run_id
WHERE u.due_at <= statement_timestamp() ORDER BY u.due_at LIMIT $1 FOR UPDATE OF u SKIP LOCKED
"""


def look(most: int) -> int:
    """Look at approved gates that are due; return of how many people are told that they have not run, or run now."""
    with transaction.atomic():
        found: Sequence[Any] = run_sql(_LOOK, [most])
        over = [gate for gate, _, begun, ended in found if begun or ended]
        if over:
            Unrun.objects.filter(pk__in=over).delete()
        late = _gates(gate for gate, raised, begun, ended in found if begun and raised)
        for gate in late:
            gate.say("gate.begun", by=SYSTEM)
        waiting = {gate: raised for gate, raised, begun, ended in found if not (begun or ended)}
        count = sum(_tell_unrun(gate, raised=waiting[gate.pk]) for gate in _gates(waiting))
    return count + len(late)


def _gates(numbers: Iterable[int]) -> list[Gate]:
    wanted = list(numbers)
    return list(Gate.objects.filter(pk__in=wanted).select_related("run__plan", "policy")) if wanted else []


def _tell_unrun(gate: Gate, *, raised: bool) -> bool:
    """Tell people that nothing of the gate has run; False where they were told before, or are not to be told."""
    row, reason = Unrun.objects.filter(pk=gate.pk), why(gate)
    if reason is None:
        row.look_again(timedelta(seconds=settings.HOLDPOINT_NOT_RUN_AFTER))
        return False
    if raised or not row.tell(AGAIN):
        row.look_again(AGAIN)
        return False
    closed = gate.closed_at.isoformat() if gate.closed_at else None
    gate.say("gate.not_run", by=SYSTEM, data={"kind": reason.code, "since": closed})
    return True


def why(gate: Gate) -> NotRun | None:
    """Say why nothing that an approved gate lets run has begun; None where its run waits by its own plan."""
    run = gate.run
    if run.status == Run.Status.FAILED:
        return NotRun("failed", "The run failed before it came to this. Open the run to repair it.")
    other = Gate.objects.open().filter(run=run).order_by("pk").values_list("pk", flat=True).first()
    if other is not None:
        return NotRun("gate", f"The run waits for gate {other} first.", gate=other)
    if run.status == Run.Status.WAITING:
        return None
    if run.plan.external:
        return NotRun("program", "The program that performs it has not taken it up. Check that it is running.")
    idle, there = missing_workers.idle(run)
    if idle:
        return NotRun("queued" if there else "no_worker", idle[:1].upper() + idle[1:])
    if run.status == Run.Status.QUEUED:
        return NotRun("queued", _queued(run.wake_at))
    return NotRun("running", f"A worker is still at the step “{run.next_step}”, which comes before.")


def _queued(until: datetime | None) -> str:
    if until is None:
        return "The run is in the queue, behind others."
    return f"The run is in the queue until {until:%H:%M:%S} UTC, after a failed attempt."
