"""Carries out what a run's branch decided about its children, after its transaction: see agents.children.orders.

The children of a run that failed or was cancelled are cancelled too, and their effects stay, as its own do. That needs
no order: it follows from how the run ended. Of a frozen run nobody knows what it would have needed: its children go on.
Each order is begun once or more; to begin it again changes nothing.

A child that is in the middle of an effect ends once it is known what came of it: its worker tells, or a person.

It also undoes a child that its parent left behind: back to its beginning, where all that it did is off its path.

Its own worker then settles it as any run that ends: effects newest first, with a person asked where an undo fails, its
own children too. What cannot be undone is kept, and named. Of a run that retention has pruned, the beginning is the
oldest checkpoint that is left: those from which effects start are always kept, so all effects come after it.

A child whose beginning does not verify is frozen, as its worker would freeze it, and counts as ended for its parent.

A child that was upgraded since has its beginning upgraded too: a person who is asked there decides under its version.
"""

from __future__ import annotations

from functools import partial

import structlog
from django.db import InterfaceError, OperationalError, transaction

from agents.children import turns
from agents.compatibility import edited_states
from agents.definition import registry
from agents.effects import hold_left_behind
from agents.errors import UpcastFailed
from agents.models import ChildLink
from agents.runner import engine
from agents.session import child_runs, translate_history
from agents.session.run_path import RunPath
from approvals.gates import closing
from approvals.models import Gate
from checkpoints import actors, crash_points, store
from checkpoints.actors import SYSTEM, Actor
from checkpoints.errors import NotVerified
from checkpoints.events import event_log
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql
from checkpoints.store import Header, Snapshot, claims
from checkpoints.store.claims import Claim

from .cancel import cancel, cancel_once_known
from .rewind import taken_at_once


def undo(row: ChildLink, *, by: Actor, reason: str) -> bool:
    """Begin to undo the child; False while its worker is asked to stop first.

    A worker that does not stop by the next call is fenced.
    """
    run = row.run
    if run.status == Run.Status.RUNNING and claims.ask_to_halt(run, by):
        return False
    if run.frozen:
        return True
    if edited_states.known_agent(run.plan_id) is None and registry.way_of(run.plan) is None:  # no agent to undo by
        cancel(run, by=by, reason=reason)
        return True

    def back(claim: Claim) -> None:
        first = run.checkpoints.order_by("seq").values_list("id", flat=True)[0]
        try:
            target = store.load_checkpoint(first)
            next_step, writes = _under(run, target)
        except NotVerified as fault:
            engine.freeze(claim, fault)
            transaction.on_commit(partial(turns.stopped, row.parent_id))
            return
        hold_left_behind.drop_orders(run)
        header = Header(kind="rewind", step=next_step, next_step=next_step)
        status = str(Run.Status.QUEUED)
        saved = store.move_head(target, writes, claim=claim, header=header, status=status, actor=by, plan=run.plan)
        for gate in Gate.objects.open().filter(run=run).order_by("pk"):
            closing.withdraw(gate, by=by, reason=reason)
        hold_left_behind.hold(run, RunPath.to(saved.id), by=by)
        data = {"to": target.seq, "seq": saved.seq, "step": next_step}
        event_log.record("run.rewound", subject=f"run:{run.pk}", run=run, by=by, data=data)
        crash_points.point("beside_undo_child", row.step)
        run.settle_first(Run.Status.CANCELLED, reason, by=by)
        ChildLink.objects.filter(pk=row.pk, ordered=row.ordered).update(carried_out=True)

    taken_at_once(run, by, back)
    return True


def _under(run: Run, target: Snapshot) -> tuple[str, translate_history.State]:
    """Return the next step, and the writes that turn the target's state into one of the run's version."""
    try:
        return translate_history.going_on_from(target, run.plan)
    except UpcastFailed:  # no upcaster leads there any more: the head's values fit, and no step reads them
        head = store.load(run)
        return head.next_step, translate_history.difference(target.state, head.state)


log = structlog.get_logger()

_LIVE = "status IN ('queued', 'running', 'waiting')"
_NEXT = f"SELECT parent_id AS id FROM checkpoints_run WHERE parent_id > $1 AND {_LIVE} ORDER BY parent_id LIMIT 1"  # noqa: S608 - a constant
# Each parent with live children by one look at the index, however many it has.
_PARENTS = f"""
WITH RECURSIVE parents AS (
  SELECT first.id, 1 AS number FROM ({_NEXT}) first
  UNION ALL
  SELECT later.id, number + 1 FROM parents CROSS JOIN LATERAL ({_NEXT.replace("$1", "parents.id")}) later
  WHERE number < $2
)
SELECT parents.id, run.status IN ('failed', 'cancelled') AND run.frozen_at IS NULL
FROM parents JOIN checkpoints_run run ON run.id = parents.id ORDER BY parents.id
"""  # noqa: S608 - constants


def pending(limit: int, *, after: int = 0) -> list[int]:
    """Return the runs, from the number `after` on, whose orders to their children were not carried out."""
    waiting = ChildLink.objects.exclude(ordered="").filter(carried_out=False, parent__gt=after).order_by("parent")
    return list(waiting.values_list("parent_id", flat=True).distinct()[:limit])


def carry_out(parent: int) -> int:
    """Carry out what the run ordered its children; return how many orders there were."""
    rows = ChildLink.objects.exclude(ordered="").filter(parent=parent, carried_out=False).order_by("pk")
    found = list(rows.select_related("run__plan", "parent__plan"))
    for row in found:
        crash_points.point("before_order", row.step)
        try:
            begun = _carry_out(row)
        except (OperationalError, InterfaceError):
            raise
        except Exception:  # what is stored of it may not verify: the others are ended all the same
            log.exception("child.not_ended", run=row.run_id, order=row.ordered)
            continue
        crash_points.point("after_order", row.step)
        if begun:
            ChildLink.objects.filter(pk=row.pk, ordered=row.ordered).update(carried_out=True)
    return len(found)


def _carry_out(row: ChildLink) -> bool:
    """Tell whether the order is carried out, or was begun. It begins once: another one would fence its worker."""
    by = actors.of_agent(row.parent.plan.agent)
    if row.ordered == ChildLink.Order.CANCEL:
        reason = f"R-{row.parent_id}, which started it, no longer needs it."
        return row.run.status not in Run.LIVE or cancel_once_known(row.run, by=by, reason=reason)
    if not child_runs.is_unsettled(row):
        return True
    reason = f"R-{row.parent_id}, which started it, goes on without it."
    return undo(row, by=by, reason=reason)


def bereaved(after: int, limit: int) -> tuple[list[int], int]:
    """Look at `limit` runs with live children, from the number `after` on.

    Returns those that failed or were cancelled, and the number to go on from; 0: from the beginning.
    """
    found = run_sql(_PARENTS, [after, limit])
    return [run for run, ended in found if ended], found[-1][0] if len(found) == limit else 0


def end_with(parent: int) -> int:
    """Cancel the live children of a run that failed or was cancelled; return how many there were."""
    run = Run.objects.get(pk=parent)
    if run.status not in (Run.Status.FAILED, Run.Status.CANCELLED) or run.frozen:
        return 0
    found = list(Run.objects.live().filter(parent=parent, ending="").select_related("plan").order_by("pk"))
    words = (
        f"R-{parent}, which started it, failed."
        if run.status == "failed"
        else f"R-{parent}, which started it, was cancelled."
    )
    for child in found:
        with transaction.atomic():
            cancel_once_known(child, by=SYSTEM, reason=words)
            if Run.objects.live().filter(pk=parent).select_for_update(no_key=True):  # a person has moved it meanwhile
                transaction.set_rollback(True)
                break
        crash_points.point("after_end_with")
    return len(found)
