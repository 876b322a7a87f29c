"""Releases a run whose step waits, and ends a wait before its time."""

from __future__ import annotations

from django.db import transaction

from agents.errors import RewindRefused
from agents.models import Wait
from agents.session import gates_beside
from agents.session.run_session import RunSession
from checkpoints import crash_points
from checkpoints.actors import Actor
from checkpoints.events import event_log
from checkpoints.models import Run
from checkpoints.runs.plans import StepSpec

from . import signals


def suspend(session: RunSession, spec: StepSpec, wait: Wait) -> None:
    """Release the run until the wait is over, and keep the wait, in one transaction. Raises Fenced.

    Under the run's row, which whoever sends a signal locks too: a signal that came meanwhile is found here, and one
    that comes later finds the run waiting. A wait is no failed attempt.
    """
    crash_points.point("before_wait", spec.name)
    with gates_beside.falling_asleep(session.run, session.asking), transaction.atomic():
        session.hold_token()
        wait.head = session.snapshot.id
        wait.save()
        came = wait.kind == Wait.Kind.SIGNAL and signals.take(session, wait)
        session.wait("" if came else words_of(wait), wake_at=None if came else wait.due)
    crash_points.point("after_wait", spec.name)


def words_of(wait: Wait) -> str:
    """Say what a run waits for."""
    if wait.kind == Wait.Kind.TIMER:
        return f"Waits until {wait.due:%Y-%m-%d %H:%M:%S} UTC"
    return f"Waits for the signal {wait.name}"


def wake_now(run: Run, *, by: Actor) -> None:
    """End the timer that the run waits for, by a person's order. Raises RewindRefused if it waits for none."""
    with transaction.atomic():
        run.refresh_from_db(from_queryset=Run.objects.select_for_update(no_key=True).select_related("plan"))
        wait = Wait.objects.current(run)
        if wait is None or wait.kind != Wait.Kind.TIMER:
            raise RewindRefused("This run is not waiting for a time.")
        crash_points.point("before_wake", wait.step)
        Wait.objects.filter(pk=wait.pk).update(ended_by=by.id)
        data = {"step": wait.step, "name": wait.name}
        event_log.record("timer.skipped", subject=f"run:{run.pk}", run=run, by=by, data=data)
        run.wake(by=by)
        crash_points.point("after_wake", wait.step)
