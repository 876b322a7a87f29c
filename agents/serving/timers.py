"""The sweeper's part for timers: it wakes all runs whose time has come, many by one statement.

The statement is the whole change, each run's event among it: a sweeper that dies has either woken a batch or not, and
rings for those that it woke in its next pass, as for all that is due. A run that a person wakes, moves or cancels at
the same moment belongs to whoever locks its row first; the other finds it changed, or leaves it alone.
"""

from __future__ import annotations

from agents.definition import registry
from agents.ringing import doorbell
from agents.ringing.ring_pauses import RecentRings
from checkpoints import crash_points
from checkpoints.actors import SYSTEM
from checkpoints.models import Plan, Run
from checkpoints.models.run import WokenRun

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
