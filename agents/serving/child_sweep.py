"""The sweeper's part for children: what a crash dropped between a run's end and what follows from it."""

from __future__ import annotations

from dataclasses import dataclass

from agents.children import turns
from agents.models import ChildLink
from agents.moves import child_orders

AT_ONCE = 50  # parents a pass
LOOKED_AT = 500  # parents a pass whose end is looked at, in turn


@dataclass
class ChildSweep:
    """The sweep of one sweeper process, which looks at a part of the parents in each pass."""

    looked_at: int = 0  # the number of the last parent

    def __call__(self) -> int:
        """Carry out orders that wait, end children with their parents, let held ones go; return how many there were."""
        done = sum(child_orders.carry_out(parent) for parent in child_orders.pending(AT_ONCE))
        bereaved, self.looked_at = child_orders.bereaved(self.looked_at, LOOKED_AT)
        done += sum(child_orders.end_with(parent) for parent in bereaved)
        held = ChildLink.objects.filter(held=True).order_by("parent").values_list("parent_id", flat=True)
        return done + sum(turns.let_go(parent) for parent in held.distinct()[:AT_ONCE])
