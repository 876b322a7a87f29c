"""Undoes a child that its parent left behind: back to its beginning, where all that it did is off its path.

Its own worker then settles it as any run that ends: effects newest first, with a person asked where an undo fails, its
own children too. What cannot be undone is kept, and named. Of a run that retention has pruned, the beginning is the
oldest checkpoint that is left: those from which effects start are always kept, so all effects come after it.
"""

from __future__ import annotations

from agents.compatibility import deployed
from agents.definition import registry
from agents.effects import hold_left_behind
from agents.models import ChildLink
from agents.session.run_path import RunPath
from approvals.gates import closing
from approvals.models import Gate
from checkpoints import crash_points, store
from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.models import Run
from checkpoints.store import Header, claims
from checkpoints.store.claims import Claim

from .cancel import cancel
from .rewind import taken_at_once


def undo(row: ChildLink, *, by: Actor, reason: str) -> bool:
    """Begin to undo the child; False while its worker is asked to stop first. Raises NotVerified.

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
        target = store.load_checkpoint(first)
        hold_left_behind.drop_orders(run)
        header = Header(kind="rewind", step=target.next_step, next_step=target.next_step)
        status = str(Run.Status.QUEUED)
        saved = store.move_head(target, {}, claim=claim, header=header, status=status, actor=by, plan=run.plan)
        for gate in Gate.objects.open().filter(run=run).order_by("pk"):
            closing.withdraw(gate, by=by, reason=reason)
        hold_left_behind.hold(run, RunPath.to(saved.id), by=by)
        data = {"to": target.seq, "seq": saved.seq, "step": target.next_step}
        event_log.record("run.rewound", subject=f"run:{run.pk}", run=run, by=by, data=data)
        crash_points.point("beside_undo_child", row.step)
        run.settle_first(Run.Status.CANCELLED, reason, by=by)
        ChildLink.objects.filter(pk=row.pk, ordered=row.ordered).update(carried_out=True)

    taken_at_once(run, by, back)
    return True
