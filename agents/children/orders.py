"""Orders to children: what a run's branch decided about them, written in the run's own transaction.

They are carried out after it, by whoever is told (agents.moves.child_orders), since nobody may lock a child's row
under that of its parent; what a crash dropped the sweeper carries out.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from agents.models import ChildLink
from agents.ringing import doorbell
from agents.session import child_runs
from agents.session.run_session import RunSession
from checkpoints.events import event_log


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
