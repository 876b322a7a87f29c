"""Settles the children that a run left behind, before it ends or starts others: what they did is undone, they end."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from django.db import transaction

from agents.models import ChildLink
from agents.session import child_runs, gates_beside
from agents.session.run_session import RunSession
from checkpoints import crash_points

from . import orders


def settled(session: RunSession) -> bool:
    """Tell whether no child has to be settled; else order it, and release the run until they have ended. Raises Fenced.

    They are read under the run's row, so that one which ends meanwhile is either not among them or is counted.
    """
    if not session.left_children():
        return True
    crash_points.point("before_settle")
    with transaction.atomic():
        session.hold_token()
        _wait(session, orders.undo_left(session))
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
