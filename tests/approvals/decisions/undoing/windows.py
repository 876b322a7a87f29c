"""Gates whose policy gives an undo window, and the end of that window."""

from __future__ import annotations

import datetime as dt
from typing import Any

from django.utils import timezone

from approvals.decisions.undo_window import settle
from approvals.models import Gate
from tests.factories import change_gate, make_gate, make_policy, unique

WINDOW = dt.timedelta(minutes=2)


def make_held(team: Any, **policy: Any) -> Gate:
    """Open a gate whose decisions wait for two minutes."""
    return make_gate(policy=make_policy(team, **{"name": unique("refunds"), "undo_window": WINDOW, **policy}))


def now(gate: Gate) -> Gate:
    return Gate.objects.select_related("run__plan", "policy", "team").get(pk=gate.pk)


def pass_window(gate: Gate) -> None:
    """Let the undo window end a second ago."""
    change_gate(gate, settles_at=timezone.now() - dt.timedelta(seconds=1))


def end_window(gate: Gate) -> bool:
    """Let the undo window end, and do what the sweeper does then."""
    pass_window(gate)
    return settle(now(gate))
