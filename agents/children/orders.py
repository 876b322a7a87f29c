"""Orders to children: what a run's branch decided about them, written in the run's own transaction.

They are carried out after it, by whoever is told (agents.moves.child_orders), since nobody may lock a child's row
under that of its parent; what a crash dropped the sweeper carries out.

It also settles the children that a run left behind, before it ends or starts others: what they did is undone, they
end.

It also saves a step that counts on children, and gives up those that an earlier execution of it had started.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from django.db import transaction

from agents.definition.outputs import StepOutput
from agents.errors import Retry
from agents.models import ChildLink
from agents.ringing import doorbell
from agents.session import child_runs, gates_beside
from agents.session.performer import Returned
from agents.session.run_session import RunSession
from checkpoints import crash_points
from checkpoints.events import event_log
from checkpoints.runs.plans import StepSpec


def cancel(session: RunSession, runs: Iterable[int]) -> None:
    """Order these children, as far as they live, to end; in the transaction of the holder of the token."""
    live = ChildLink.objects.filter(
        parent=session.run, run__in=list(runs), run__status__in=session.run.LIVE, ordered=""
    )
    _order(session, list(live), ChildLink.Order.CANCEL)


def undo_left(session: RunSession, step: str = "") -> list[ChildLink]:
    """Order the children that were left behind, of one step or of all, to undo what they did, and to end; return them.

    In the transaction of the holder of the token.
    """
    child_runs.lock(ChildLink.objects.filter(parent=session.run))
    rows = [row for row in session.left_children() if step in ("", row.step)]
    _order(session, [row for row in rows if row.ordered != ChildLink.Order.UNDO], ChildLink.Order.UNDO)
    return rows


def undo(session: RunSession, runs: Iterable[int]) -> None:
    """Order these children to undo what they did, and to end; in the transaction of the holder of the token.

    None on which another run of the lineage counts by now.
    """
    rows = child_runs.lock(ChildLink.objects.filter(parent=session.run, run__in=list(runs)))
    kept = child_runs.kept_for_kin(rows)
    _order(session, [row for row in rows if not (row.undone or row.pk in kept)], ChildLink.Order.UNDO)


def _order(session: RunSession, rows: list[ChildLink], order: ChildLink.Order) -> None:
    if not rows:
        return
    ChildLink.objects.filter(pk__in=[row.pk for row in rows]).update(ordered=order, carried_out=False)
    run, children = session.run, [row.run_id for row in rows]
    data = {"children": children, "order": str(order)}
    event_log.record("child.ordered", subject=f"run:{run.pk}", run=run, by=session.by, data=data)
    transaction.on_commit(lambda: doorbell.ring_for_children(run.pk))


def settled(session: RunSession) -> bool:
    """Tell whether no child has to be settled; else order it, and release the run until they have ended. Raises Fenced.

    They are read under the run's row, so that one which ends meanwhile is either not among them or is counted.
    """
    if not session.left_children():
        return True
    crash_points.point("before_settle")
    with transaction.atomic():
        session.hold_token()
        _wait(session, undo_left(session))
    return False


def wait_for(session: RunSession, ids: Collection[int]) -> None:
    """Release the run until these children, which were told to undo what they did, have ended. Raises Fenced."""
    with gates_beside.falling_asleep(session.run, session.asking), transaction.atomic():
        session.hold_token()
        _wait(session, child_runs.unsettled(ids))


def _wait(session: RunSession, rows: Sequence[ChildLink]) -> None:
    runs = ", ".join(f"R-{row.run_id}" for row in rows[:10])
    words = f"Waits until {runs} is undone" if len(rows) == 1 else f"Waits until {len(rows)} runs are undone: {runs}"
    session.wait(words if rows else "", awaited=len(rows))


def executed(session: RunSession, spec: StepSpec, output: StepOutput, returned: Returned) -> bool:
    """Save an execution with the landing of its children; as `RunSession.executed`.

    Children of the same step that were left behind and that no later step may take over are undone from now on. In a
    loop they wait until the run ends, since a later turn may take them over. Raises Retry if what the step took from
    another run of the lineage was undone meanwhile.
    """
    told: dict[str, Any] = {
        "took": returned.took, "notes": returned.notes, "children": returned.children, "beside": returned.beside
    }  # fmt: skip
    if not returned.children:
        return session.executed(spec, output.writes, output.goto, **told)
    session.flush()  # outside: what a rollback takes back is not written again
    with transaction.atomic():
        session.hold_token()
        if session.run.forked_from and not child_runs.count_on(returned.children):
            raise Retry("what another run did for this step was undone meanwhile")
        going = session.executed(spec, output.writes, output.goto, **told)
        next_step = session.snapshot.next_step
        passed = not next_step or spec.name not in session.plan.reachable(next_step)
        if passed and session.left_children():
            undo_left(session, spec.name)
    return going
