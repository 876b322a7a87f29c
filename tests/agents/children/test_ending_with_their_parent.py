"""The children of a run that was cancelled or failed are cancelled too; those of one that completed or froze go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.db import transaction
from django.db.models.functions import Now

from agents.models import ChildLink
from agents.moves import child_orders, rewind
from agents.moves.cancel import cancel
from agents.serving.child_sweep import ChildSweep
from agents.serving.sweeper import Sweeper
from approvals.models import Gate
from checkpoints import actors, crash_points
from checkpoints.models import Run
from tests.factories import ann
from tests.factories.driven_runs import advance, answer, effects, make_run

from .families import child, children, make_parent, statuses


def sweep() -> None:
    """One pass of a sweeper."""
    Sweeper().children()


def test_they_are_cancelled_with_their_parent_and_their_gates_are_withdrawn() -> None:
    run = advance(make_parent(*"abcd", modes={"a": "ask", "b": "sleep"}))
    advance(child(run, "a"))
    advance(child(run, "b"))
    advance(child(run, "c"))
    assert statuses(run) == ["waiting", "waiting", "completed", "queued"]
    cancel(run, by=actors.SYSTEM, reason="not wanted")
    assert statuses(run) == ["waiting", "waiting", "completed", "queued"]  # after its transaction, by somebody else
    sweep()
    assert statuses(run) == ["cancelled", "cancelled", "completed", "cancelled"]
    assert child(run, "a").reason == f"R-{run.pk}, which started it, was cancelled."
    assert Gate.objects.get(run=child(run, "a")).status == "withdrawn"


@pytest.mark.parametrize("by_order", [False, True])
def test_one_in_the_middle_of_an_effect_ends_once_it_is_known_what_came_of_it(
    by_order: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was cancelled at once, and nobody was ever asked whether what it had begun had happened."""
    run = advance(make_run("payroll", ledger=str(tmp_path / "ledger"), names=["a"]))
    monkeypatch.setenv("HOLDPOINT_CRASH", f"after_effect:raise:1:{tmp_path / 'hits'}")
    with pytest.raises(crash_points.Crashed):
        advance(child(run, "a"))
    monkeypatch.delenv("HOLDPOINT_CRASH")
    if by_order:
        ChildLink.objects.filter(parent=run).update(ordered="cancel")
    else:
        cancel(run, by=actors.SYSTEM, reason="not wanted")
    sweep()
    found = child(run, "a")
    assert (found.status, found.halt) == ("running", True)
    Run.objects.filter(pk=found.pk).update(lease_until=Now())
    advance(found)
    sweep()
    assert statuses(run) == ["waiting"]
    answer(found, "happened", {"paid": "a"})
    sweep()
    assert statuses(run) == ["queued"]  # the answer is not applied yet
    advance(found)
    sweep()
    assert [each.status for each in effects(found)] == ["done", "done"]


def test_none_is_cancelled_any_more_once_a_person_has_sent_the_parent_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that its new branch had taken over were cancelled under it."""
    run = advance(make_parent("a", "b"))
    cancel(run, by=actors.SYSTEM, reason="not wanted")

    def sent_back(name: str, *_: object) -> None:
        if name == "after_end_with":
            rewind.rewind(Run.objects.get(pk=run.pk), to=1, by=ann(run.team))

    monkeypatch.setattr(crash_points, "point", sent_back)
    child_orders.end_with(run.pk)
    assert statuses(run) == ["cancelled", "queued"]


def test_a_parent_that_was_cancelled_is_not_woken_by_their_ends() -> None:
    run = advance(make_parent("a", "b"))
    cancel(run, by=actors.SYSTEM, reason="not wanted")
    sweep()
    run.refresh_from_db()
    assert (run.status, statuses(run)) == ("cancelled", ["cancelled"] * 2)


def test_the_order_is_rung_for_after_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[int] = []
    monkeypatch.setattr("agents.ringing.doorbell.ring_for_children", rung.append)
    run = advance(make_parent("a"))
    with transaction.atomic():
        cancel(run, by=actors.SYSTEM, reason="not wanted")
        assert rung == []
    assert rung == [run.pk]


def test_of_a_parent_that_failed_they_are_cancelled() -> None:
    run = advance(make_parent("a", "b", need=1, modes={"a": "ask"}))
    advance(child(run, "a"))
    advance(child(run, "b"))
    run = advance(make_parent("a", "b"))
    child(run, "a").cancel(by=actors.SYSTEM)
    advance(run)
    answer(run, "stop")
    advance(run)
    assert (run.status, child(run, "b").status) == ("failed", "queued")
    sweep()
    assert child(run, "b").status == "cancelled"


@pytest.mark.parametrize(("status", "frozen"), [("completed", False), ("failed", True)])
def test_of_a_parent_that_completed_or_froze_they_go_on(status: str, frozen: bool) -> None:
    run = advance(make_parent("a", need="none"))
    if frozen:
        Run.objects.filter(pk=run.pk).update(status=status, frozen_at=run.created_at)
    sweep()
    assert child_orders.end_with(run.pk) == 0
    assert statuses(run) == ["queued"]


def test_grandchildren_are_cancelled_too() -> None:
    run = advance(make_run("nested", depth=2))
    [below] = children(run)
    advance(below)
    cancel(run, by=actors.SYSTEM, reason="not wanted")
    sweep()
    sweep()
    assert [each.status for each in (*children(run), *children(below))] == ["cancelled"] * 2


def test_the_sweeper_looks_at_some_parents_in_each_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.serving.child_sweep.LOOKED_AT", 2)
    runs = [advance(make_parent("a")) for _ in range(5)]
    for run in runs:
        cancel(run, by=actors.SYSTEM, reason="not wanted")
    pass_of = ChildSweep()
    for _ in range(60):
        pass_of()
        if all(statuses(run) == ["cancelled"] for run in runs):
            return
    raise AssertionError([statuses(run) for run in runs])
