"""Driving a run together with its children."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db.models.functions import Now

from agents.moves import child_orders
from checkpoints.models import Run
from tests.factories.driven_runs import advance, make_run

ROUNDS = 60


def make_parent(*names: str, **input: Any) -> Run:
    """A queued run that will start a child for each name."""
    return make_run("parent", names=list(names), **input)


def children(parent: Run) -> list[Run]:
    """The runs that it started, oldest first."""
    return list(Run.objects.filter(parent=parent).order_by("pk"))


def child(parent: Run, name: str) -> Run:
    """The newest child with this name."""
    return Run.objects.filter(parent=parent, title=f"Child {name}").latest("pk")


def statuses(parent: Run) -> list[str]:
    """The status of each child, oldest first."""
    return [each.status for each in children(parent)]


def family_of(run: Run) -> list[Run]:
    """The run and all that it started, at any depth."""
    run.refresh_from_db()
    return [run, *(each for child in children(run) for each in family_of(child))]


def to_rest(parent: Run) -> Run:
    """Take the family on, as workers would, until nobody is queued or running."""
    for _ in range(ROUNDS):
        for each in child_orders.pending(ROUNDS):
            child_orders.carry_out(each)
        busy = [each for each in family_of(parent) if each.status in ("queued", "running")]
        if not busy:
            parent.refresh_from_db()
            return parent
        Run.objects.filter(pk=busy[0].pk, status="running").update(lease_until=Now())
        advance(busy[0])
    raise AssertionError(f"{parent} and its children do not come to rest: {statuses(parent)}")


def worked(ledger: Path) -> list[str]:
    """The names for which children worked, in order."""
    return ledger.read_text().splitlines() if ledger.exists() else []
