"""A child whose beginning does not verify cannot be undone: it is frozen, and its parent goes on.

It was ordered to be undone at each sweep, and logged each time, while its parent waited for ever.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.db import connection

from agents.moves import child_orders, rewind
from agents.serving.sweeper import Sweeper
from checkpoints.models import Event, Run
from tests.agents.children.pages.test_page import page, part
from tests.factories import ann
from tests.factories.driven_runs import advance, decide, make_run, trail

from .families import child, to_rest, worked


def damage(run: Run, seq: int) -> None:
    """Change a checkpoint of the run behind its digest's back."""
    with connection.cursor() as cursor:
        told = "UPDATE checkpoints_checkpoint SET took_us = took_us + 1 WHERE run_id = %s AND seq = %s"
        cursor.execute(told, [run.pk, seq])
        assert cursor.rowcount == 1


def test_it_is_frozen_once_the_others_are_undone_and_the_parent_ends(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    run = to_rest(make_run("payroll", ledger=str(ledger), names=["a", "b"], modes={"look": ""}))
    patch: list[Any] = [{"op": "replace", "path": "/names", "value": []}]
    rewind.edit(run, at=trail(run).index(("step", "pay_all")), patch=patch, by=ann(run.team))
    to_rest(run)
    decide(run)
    advance(run)
    damaged = child(run, "a")
    damage(damaged, 1)
    for _ in range(3):
        Sweeper().children()
    assert run.pk not in child_orders.pending(1000)

    assert to_rest(run).status == "completed"
    damaged.refresh_from_db()
    assert (damaged.frozen, child(run, "b").status) == (True, "cancelled")
    assert damaged.reason.startswith("Integrity fault at ")
    assert Event.objects.filter(kind="run.failed", subject=f"run:{damaged.pk}").count() == 1
    assert worked(ledger) == ["pay a", "pay b", "take back b"]
    assert "abandoned; frozen, so not undone" in part(page(run), "children")
