"""The parts of the sweeper: timers, children, and approvals of which nothing has begun.

Also here: the sweeper's part for approved gates: it tells people of those of which nothing has begun, and says why.

A gate that lets effects run leaves a row as it closes, to be looked at some minutes later. By then one of its effects
has usually begun, and the row goes. Where none has, people are told once, and the row is looked at again until
something has begun, or a person has moved or ended the run. A run that waits by its own plan, for a time, a signal or
its children, is left alone.

Also here: the sweeper's part for timers: it wakes all runs whose time has come, many by one statement.

The statement is the whole change, each run's event among it: a sweeper that dies has either woken a batch or not, and
rings for those that it woke in its next pass, as for all that is due. A run that a person wakes, moves or cancels at
the same moment belongs to whoever locks its row first; the other finds it changed, or leaves it alone.

Also here: the sweeper's part for children: what a crash dropped between a run's end and what follows from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction

from agents.children import turns
from agents.definition import registry
from agents.moves import child_orders
from agents.ringing import doorbell
from agents.ringing.ring_pauses import RecentRings
from agents.serving import missing_workers
from approvals.consequences.performed import NotRun
from approvals.models import Gate, Unrun
from checkpoints import crash_points
from checkpoints.actors import SYSTEM
from checkpoints.models import Plan, Run
from checkpoints.models.run import WokenRun
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


TOGETHER = 500  # runs that one statement wakes
MOST = 20  # statements a pass, lest all else wait when a whole night's timers are due


def wake_timers(bells: RecentRings | None = None) -> int:
    """Queue the waiting runs whose timer is due and ring for them, noted in `bells`; return how many."""
    woken = 0
    for _ in range(MOST):
        found = Run.objects.wake_due(TOGETHER, by=SYSTEM)
        woken += len(found)
        if found:
            crash_points.point("after_timers")
            _ring(found, bells)
        if len(found) < TOGETHER:
            break
    return woken


def _ring(woken: list[WokenRun], bells: RecentRings | None) -> None:
    plans = Plan.objects.only("agent", "version", "external").in_bulk({run.plan for run in woken})
    queues = {number: registry.queue_for(plan) for number, plan in plans.items()}
    if doorbell.ring_for_many((run.id, queues[run.plan], run.priority) for run in woken) and bells is not None:
        bells.rang_all((run.id, run.token) for run in woken)


AT_ONCE = 50  # parents a pass
LOOKED_AT = 500  # parents a pass that are looked at, in turn
COUNTED = 10  # children of a parent, which is enough to see that none, or too few, are left
# A parent waits for no more children than live, or are ordered to be undone and were not reached yet; one that settles
# waits for the ordered ones alone. Where there are fewer, an end was not counted: a worker of an older release wrote
# it, or somebody by hand, or there was nothing to end.
_AWAITING = f"""
SELECT p.id, least(p.awaited, {COUNTED}) > (
  SELECT count(*) FROM (
    SELECT FROM checkpoints_run c
    WHERE c.parent_id = p.id AND c.status IN ('queued', 'running', 'waiting') AND (
      NOT p.settling OR EXISTS (SELECT FROM agents_childlink o WHERE o.run_id = c.id AND o.ordered <> ''))
    LIMIT {COUNTED}) live
) + (
  SELECT count(*) FROM (
    SELECT FROM agents_childlink l
    WHERE l.parent_id = p.id AND l.ordered <> '' AND NOT l.carried_out LIMIT {COUNTED}) ordered
)
FROM checkpoints_run p WHERE p.status = 'waiting' AND p.awaited > 0 AND p.id > $1 ORDER BY p.id LIMIT $2
"""  # noqa: S608 - a constant


@dataclass
class ChildSweep:
    """The sweep of one sweeper process, which looks at a part of the parents in each pass.

    Each part goes on from where the last pass ended: what stays open for long must not hide the others.
    """

    ordered: int = 0  # the number of the last parent whose orders were carried out
    released: int = 0  # that of the last one whose held children were let go
    looked_at: int = 0  # the number of the last parent with live children
    awaited: int = 0  # that of the last parent that waits for some

    def __call__(self) -> int:
        """Do what a crash dropped: orders, ends with a parent, held ones, parents to wake; return how many there were.

        A parent is woken last, when none of its orders is left over.
        """
        ordering = child_orders.pending(AT_ONCE, after=self.ordered)
        self.ordered = _next(ordering, AT_ONCE)
        done = sum(child_orders.carry_out(parent) for parent in ordering)
        bereaved, self.looked_at = child_orders.bereaved(self.looked_at, LOOKED_AT)
        done += sum(child_orders.end_with(parent) for parent in bereaved)
        holding = turns.holding(AT_ONCE, after=self.released)
        self.released = _next(holding, AT_ONCE)
        done += sum(turns.let_go(parent) for parent in holding)
        missed, self.awaited = uncounted(self.awaited, LOOKED_AT)
        return done + wake(missed)


def _next(parents: list[int], limit: int) -> int:
    """Return the number to go on from after these parents; 0: from the beginning."""
    return parents[-1] if len(parents) == limit else 0


def uncounted(after: int, limit: int) -> tuple[list[int], int]:
    """Look at `limit` runs that wait for children, from the number `after` on.

    Returns those that wait for more than are left, and the number to go on from; 0: from the beginning.
    """
    found = run_sql(_AWAITING, [after, limit])
    return [run for run, missed in found if missed], _next([run for run, _ in found], limit)


def wake(parents: list[int]) -> int:
    """Queue these runs as far as they still wait for children, and ring for them; return how many.

    One that is woken too early counts its children anew, and waits again. A row that somebody has locked is left to
    them, so that no child which ends at this moment waits for two.
    """
    if not parents:
        return 0
    with transaction.atomic():
        waiting = Run.objects.filter(pk__in=parents, status=Run.Status.WAITING, awaited__gt=0).select_related("plan")
        locked = waiting.select_for_update(skip_locked=True, of=("self",)).order_by("pk")
        return sum(run.wake(by=SYSTEM) for run in locked)
