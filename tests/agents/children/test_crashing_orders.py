"""Whoever carries out what a run ordered its children may die at any moment: the next one finishes it, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.models import ChildLink
from agents.moves import child_orders, rewind
from agents.moves.cancel import cancel
from agents.serving.sweeper import Sweeper
from checkpoints import actors, crash_points
from tests.factories import ann
from tests.factories.driven_runs import advance, make_run, trail

from .families import child, make_parent, statuses, to_rest, worked


@pytest.fixture
def crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Do something that crashes at a named point."""

    def do(point: str, call: Any, *args: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setenv("HOLDPOINT_CRASH", f"{point}:raise:1:{tmp_path / f'{point}-hits'}")
            with pytest.raises(crash_points.Crashed):
                call(*args)

    return do


@pytest.mark.parametrize("point", ["before_order", "beside_undo_child", "after_order"])
def test_a_child_is_undone_once_whoever_died(crash: Any, tmp_path: Path, point: str) -> None:
    ledger = tmp_path / "ledger"
    run = to_rest(make_run("payroll", ledger=str(ledger), names=["a", "b"], modes={"look": ""}))
    at = trail(run).index(("step", "pay_all"))
    rewind.edit(run, at=at, patch=[{"op": "replace", "path": "/names", "value": ["a"]}], by=ann(run.team))
    advance(run)
    assert ChildLink.objects.get(run=child(run, "b")).ordered == "undo"
    crash(point, child_orders.carry_out, run.pk)
    to_rest(run)
    assert child(run, "b").status == "cancelled"
    assert worked(ledger) == ["pay a", "pay b", "take back b"]
    assert run.pk not in child_orders.pending(1000)


def test_the_rest_of_the_children_end_with_their_parent_later(crash: Any) -> None:
    run = advance(make_parent("a", "b"))
    cancel(run, by=actors.SYSTEM, reason="not wanted")
    crash("after_end_with", child_orders.end_with, run.pk)
    assert statuses(run) == ["cancelled", "queued"]
    Sweeper().children()
    assert statuses(run) == ["cancelled"] * 2


def test_a_turn_that_was_not_given_is_given_later(crash: Any) -> None:
    run = advance(make_parent(*"abcde"))
    crash("before_let_go", advance, child(run, "a"))
    assert statuses(run) == ["completed", "queued", "queued", "waiting", "waiting"]
    Sweeper().children()
    assert statuses(run) == ["completed", "queued", "queued", "queued", "waiting"]
