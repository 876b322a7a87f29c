"""Settles the children that a run left behind, before the run ends: what they did is undone, and they end."""

from __future__ import annotations

from django.db import transaction
from django.utils.translation import ngettext

from agents.session.run_session import RunSession
from agents.text import saved_language
from checkpoints import crash_points

from . import orders


@saved_language()
def settled(session: RunSession) -> bool:
    """Tell whether no child has to be settled; else order it, and release the run until they have ended. Raises Fenced.

    They are read under the run's row, so that one which ends meanwhile is either not among them or is counted.
    """
    if not session.left_children():
        return True
    crash_points.point("before_settle")
    with transaction.atomic():
        session.hold_token()
        rows = orders.undo_left(session)
        words = ngettext(
            "Waits until R-%(runs)s is undone", "Waits until %(count)s runs are undone: R-%(runs)s", len(rows)
        )
        named = {"runs": ", R-".join(str(row.run_id) for row in rows[:10]), "count": len(rows)}
        session.wait(words % named if rows else "", awaited=len(rows))
    return False
