"""The sweeper's part for children: what a crash dropped between a run's end and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction

from agents.children import turns
from agents.moves import child_orders
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from checkpoints.postgresql.sql import run_sql

AT_ONCE = 50  # parents a pass
LOOKED_AT = 500  # parents a pass that are looked at, in turn
COUNTED = 10  # children of a parent, which is enough to see that none, or too few, are left
# A parent waits for no more children than live, or are ordered to be undone and were not reached yet; one that settles
# waits for the ordered ones alone. Where there are fewer, an end was not counted: a worker of an older release wrote
# it, or somebody by hand, or there was nothing to end.
_AWAITING = f"""
SELECT p.id, least(p.awaited, {COUNTED}) > (
  SELECT count(*) FROM (
    SELECT FROM checkpoints_run c
    WHERE c.parent_id = p.id AND c.status IN ('queued', 'running', 'waiting') AND (
      NOT p.settling OR EXISTS (SELECT FROM agents_childlink o WHERE o.run_id = c.id AND o.ordered <> ''))
    LIMIT {COUNTED}) live
) + (
  SELECT count(*) FROM (
    SELECT FROM agents_childlink l
    WHERE l.parent_id = p.id AND l.ordered <> '' AND NOT l.carried_out LIMIT {COUNTED}) ordered
)
FROM checkpoints_run p WHERE p.status = 'waiting' AND p.awaited > 0 AND p.id > $1 ORDER BY p.id LIMIT $2
"""  # noqa: S608 - a constant


@dataclass
class ChildSweep:
    """The sweep of one sweeper process, which looks at a part of the parents in each pass.

    Each part goes on from where the last pass ended: what stays open for long must not hide the others.
    """

    ordered: int = 0  # the number of the last parent whose orders were carried out
    released: int = 0  # that of the last one whose held children were let go
    looked_at: int = 0  # the number of the last parent with live children
    awaited: int = 0  # that of the last parent that waits for some

    def __call__(self) -> int:
        """Do what a crash dropped: orders, ends with a parent, held ones, parents to wake; return how many there were.

        A parent is woken last, when none of its orders is left over.
        """
        ordering = child_orders.pending(AT_ONCE, after=self.ordered)
        self.ordered = _next(ordering, AT_ONCE)
        done = sum(child_orders.carry_out(parent) for parent in ordering)
        bereaved, self.looked_at = child_orders.bereaved(self.looked_at, LOOKED_AT)
        done += sum(child_orders.end_with(parent) for parent in bereaved)
        holding = turns.holding(AT_ONCE, after=self.released)
        self.released = _next(holding, AT_ONCE)
        done += sum(turns.let_go(parent) for parent in holding)
        missed, self.awaited = uncounted(self.awaited, LOOKED_AT)
        return done + wake(missed)


def _next(parents: list[int], limit: int) -> int:
    """Return the number to go on from after these parents; 0: from the beginning."""
    return parents[-1] if len(parents) == limit else 0


def uncounted(after: int, limit: int) -> tuple[list[int], int]:
    """Look at `limit` runs that wait for children, from the number `after` on.

    Returns those that wait for more than are left, and the number to go on from; 0: from the beginning.
    """
    found = run_sql(_AWAITING, [after, limit])
    return [run for run, missed in found if missed], _next([run for run, _ in found], limit)


def wake(parents: list[int]) -> int:
    """Queue these runs as far as they still wait for children, and ring for them; return how many.

    One that is woken too early counts its children anew, and waits again. A row that somebody has locked is left to
    them, so that no child which ends at this moment waits for two.
    """
    if not parents:
        return 0
    with transaction.atomic():
        waiting = Run.objects.filter(pk__in=parents, status=Run.Status.WAITING, awaited__gt=0).select_related("plan")
        locked = waiting.select_for_update(skip_locked=True, of=("self",)).order_by("pk")
        return sum(run.wake(by=SYSTEM) for run in locked)
