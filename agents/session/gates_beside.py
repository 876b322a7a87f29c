"""The open gates of a run that moves, waits or ends: locked before its row, withdrawn where nobody needs their answer.

They are locked before the run's row, as in a decision: in the other order the two would deadlock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import transaction

from agents.models import Effect
from approvals.gates import closing
from approvals.models import Gate
from checkpoints import crash_points
from checkpoints.actors import SYSTEM, Actor
from checkpoints.models import Run

ENDED = "The run has ended."
SENT_BACK = "The run was sent back to before this was asked."


def lock(run_id: int) -> set[int]:
    """Lock the run's open gates, in the caller's transaction, and return them."""
    asking = Gate.objects.open().filter(run_id=run_id)
    return set(asking.select_for_update().order_by("pk").values_list("pk", flat=True))


def lock_with_effects(run_id: int) -> set[int]:
    """Lock, before the run, what whoever moves it changes: its effects, then its open gates; return these."""
    Effect.objects.lock(run_id)
    return lock(run_id)


def withdraw(run_id: int, *, by: Actor, reason: str, stand: Collection[UUID] = ()) -> None:
    """Withdraw the run's open gates but those that were opened at the checkpoints which `stand`."""
    for gate in Gate.objects.open().filter(run_id=run_id).exclude(checkpoint__in=stand).order_by("pk"):
        crash_points.point("before_withdraw", gate.step)
        closing.withdraw(gate, by=by, reason=reason)
        crash_points.point("after_withdraw", gate.step)


@contextmanager
def left(run_id: int, *, by: Actor, reason: str, stand: Callable[[], Collection[UUID]] = tuple) -> Iterator[None]:
    """Withdraw the run's open gates after what is done inside, in one transaction, but those that `stand` then."""
    with transaction.atomic():
        lock(run_id)
        yield
        withdraw(run_id, by=by, reason=reason, stand=stand())


@contextmanager
def falling_asleep(run: Run, asking: Collection[UUID]) -> Iterator[None]:
    """Wake the run, which is released to wait inside, if one of the gates that it is `asking` at was closed meanwhile.

    Whoever closed that found the run at work, and so has not woken it. `asking`: the checkpoints of the gates.
    """
    if not asking:
        yield
        return
    with transaction.atomic():
        lock(run.pk)
        yield
        if Gate.objects.filter(run=run, checkpoint__in=asking).exclude(status=Gate.Status.OPEN).exists():
            run.wake(SYSTEM)
        crash_points.point("beside_asleep", run.next_step)
