"""Undoes a child that its parent left behind: back to its beginning, where all that it did is off its path.

Its own worker then settles it as any run that ends: effects newest first, with a person asked where an undo fails, its
own children too. What cannot be undone is kept, and named. Of a run that retention has pruned, the beginning is the
oldest checkpoint that is left: those from which effects start are always kept, so all effects come after it.

A child whose beginning does not verify is frozen, as its worker would freeze it, and counts as ended for its parent.

A child that was upgraded since has its beginning upgraded too: a person who is asked there decides under its version.
"""

from __future__ import annotations

from functools import partial

from django.db import transaction

from agents.children import turns
from agents.compatibility import deployed
from agents.definition import registry
from agents.effects import hold_left_behind
from agents.errors import UpcastFailed
from agents.models import ChildLink
from agents.runner import engine
from agents.session import translate_history
from agents.session.run_path import RunPath
from approvals.gates import closing
from approvals.models import Gate
from checkpoints import crash_points, store
from checkpoints.actors import Actor
from checkpoints.errors import NotVerified
from checkpoints.events import event_log
from checkpoints.models import Run
from checkpoints.store import Header, Snapshot, claims
from checkpoints.store.claims import Claim

from .cancel import cancel
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
    if deployed.of(run.plan_id) is None and registry.way_of(run.plan) is None:  # nobody here could undo anything
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
