"""Cancels a run by a person's order: at once, or after its effects are settled if it has left any behind."""

from __future__ import annotations

from functools import partial

from django.contrib.auth.models import User
from django.db import transaction

from agents.children import turns
from agents.compatibility import edited_states
from agents.definition import registry
from agents.ringing import doorbell
from agents.session import child_runs, run_path
from agents.session.run_path import RunPath
from approvals.gates import closing
from approvals.models import Gate
from checkpoints import actors
from checkpoints.actors import Actor
from checkpoints.models import Run
from checkpoints.store import claims
from checkpoints.values.characters import one_line


class GateOpened(Exception):
    """The run opened a gate between the query for its gates and its change: begin again."""


class InDoubt(Exception):
    """The run is at an effect of which nobody knows yet whether it happened."""


def cancel(run: Run, *, by: User | Actor, reason: str, in_doubt: bool = True) -> bool:
    """End the run and withdraw its open gates, in one transaction; return False if it had already ended.

    A run that has left effects behind is queued to settle them first, and ends then. Effects on its path
    stay done. A run that already settles to end as cancelled is left alone: a second order must not
    fence a worker that undoes something there. Unless it may end `in_doubt`, it raises InDoubt where it would.
    """
    actor = by if isinstance(by, Actor) else actors.of_user(by)
    while True:
        try:
            with transaction.atomic():  # a savepoint within the caller's transaction: a rollback releases the rows
                return _cancelled(run, by=actor, reason=reason, in_doubt=in_doubt)
        except GateOpened:
            continue


def cancel_once_known(run: Run, *, by: Actor, reason: str) -> bool:
    """Cancel the run; False, and its worker is asked to stop, while nobody knows what came of the effect it is at."""
    try:
        return cancel(run, by=by, reason=reason, in_doubt=False)
    except InDoubt:
        claims.ask_to_halt(run, by)
        return False


def _cancelled(run: Run, *, by: Actor, reason: str, in_doubt: bool) -> bool:
    """Lock gates before their run, as a decision does: in the other order the two would deadlock.

    The run ends before they are withdrawn: a gate that closes wakes its run, and only a run that waits can be woken.
    """
    asking = Gate.objects.open().filter(run=run)
    gates = {gate.pk: gate for gate in asking.select_for_update().order_by("pk")}
    run.refresh_from_db(from_queryset=Run.objects.select_for_update())
    if not in_doubt and run.status in Run.LIVE and run_path.in_doubt(run):
        raise InDoubt
    settles = _has_left_something(run)
    if settles and run.ending == Run.Status.CANCELLED:
        return True
    if settles:
        _end_later(run, by, reason)
    elif not run.cancel(by=by, reason=reason):
        return False
    if Run.objects.live().filter(parent=run).exists():
        transaction.on_commit(partial(doorbell.ring_for_children, run.pk))
    if run.parent_id:
        transaction.on_commit(partial(turns.stopped, run.parent_id))
    if asking.exclude(pk__in=gates).exists():
        raise GateOpened
    for gate in gates.values():
        closing.withdraw(gate, by=by, reason="The run was cancelled.")
    return True


def _has_left_something(run: Run) -> bool:
    """Tell whether a live run has left effects behind, and its code is known here to settle them."""
    if edited_states.known_agent(run.plan_id) is None and registry.way_of(run.plan) is None:
        return False  # no process has the code that could undo anything: holds stay
    return run.status in Run.LIVE and run.head is not None and left_something(run.pk, RunPath.to(run.head))


def left_something(run_id: int, path: RunPath) -> bool:
    """Tell whether a run has effects or children off its path that are not settled."""
    return bool(run_path.of_run(run_id, path) or child_runs.left_behind(child_runs.of_run(run_id), path))


def _end_later(run: Run, by: Actor, reason: str) -> None:
    """Queue the run to settle what it has left behind, and to end as cancelled then."""
    claims.release(claims.take_over(run, by), status=Run.Status.QUEUED, reason=reason, by=by)
    run.settle_first(Run.Status.CANCELLED, one_line(reason, 300), by=by)
    queue = registry.queue_for(run.plan)
    transaction.on_commit(lambda: doorbell.ring(run.pk, queue, run.priority))
