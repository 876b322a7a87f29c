"""The children of a run that was cancelled or failed are cancelled too; those of one that completed or froze go on.

Whoever carries that out may die at any moment, a child may be damaged, and an end may go uncounted, as one does that a
worker of an older release wrote: no parent sleeps for ever.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now

from agents.models import ChildLink
from agents.moves import child_orders, rewind
from agents.moves.cancel import cancel
from agents.ringing import doorbell
from agents.runner import engine
from agents.serving import sweeps
from agents.serving.sweeper import Sweeper
from agents.serving.sweeps import ChildSweep
from approvals.models import Gate
from checkpoints import actors, crash_points
from checkpoints.models import Event, Run
from tests.agents.children.families import child, children, make_parent, statuses, to_rest, worked
from tests.agents.children.pages.test_page import page, part
from tests.factories import ann
from tests.factories.driven_runs import advance, answer, decide, effects, make_run, state, trail
from tests.harness.examples import first_alone
from tests.harness.racing_threads import meet_lock


def test_they_are_cancelled_with_their_parent_and_their_gates_are_withdrawn() -> None:
    run = advance(make_parent(*"abcd", modes={"a": "ask", "b": "sleep"}))
    advance(child(run, "a"))
    advance(child(run, "b"))
    advance(child(run, "c"))
    assert statuses(run) == ["waiting", "waiting", "completed", "queued"]
    cancel(run, by=actors.SYSTEM, reason="not wanted")
    assert statuses(run) == ["waiting", "waiting", "completed", "queued"]  # after its transaction, by somebody else
    Sweeper().children()
    assert statuses(run) == ["cancelled", "cancelled", "completed", "cancelled"]
    assert child(run, "a").reason == f"R-{run.pk}, which started it, was cancelled."
    assert Gate.objects.get(run=child(run, "a")).status == "withdrawn"
    run.refresh_from_db()
    assert run.status == "cancelled"  # and is not woken by their ends


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
    Sweeper().children()
    found = child(run, "a")
    assert (found.status, found.halt) == ("running", True)
    Run.objects.filter(pk=found.pk).update(lease_until=Now())
    advance(found)
    Sweeper().children()
    assert statuses(run) == ["waiting"]
    answer(found, "happened", {"paid": "a"})
    Sweeper().children()
    assert statuses(run) == ["queued"]  # the answer is not applied yet
    advance(found)
    Sweeper().children()
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


def test_the_order_is_rung_for_after_the_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    rung: list[int] = []
    monkeypatch.setattr("agents.ringing.doorbell.ring_for_children", rung.append)
    run = advance(make_parent("a"))
    with transaction.atomic():
        cancel(run, by=actors.SYSTEM, reason="not wanted")
        assert rung == []
    assert rung == [run.pk]


def test_of_a_parent_that_failed_they_are_cancelled() -> None:
    run = advance(make_parent("a", "b"))
    child(run, "a").cancel(by=actors.SYSTEM)
    advance(run)
    answer(run, "stop")
    advance(run)
    assert (run.status, child(run, "b").status) == ("failed", "queued")
    Sweeper().children()
    assert child(run, "b").status == "cancelled"


@pytest.mark.parametrize(("status", "frozen"), [("completed", False), ("failed", True)])
def test_of_a_parent_that_completed_or_froze_they_go_on(status: str, frozen: bool) -> None:
    run = advance(make_parent("a", need="none"))
    if frozen:
        Run.objects.filter(pk=run.pk).update(status=status, frozen_at=run.created_at)
    Sweeper().children()
    assert child_orders.end_with(run.pk) == 0
    assert statuses(run) == ["queued"]


def test_grandchildren_are_cancelled_too() -> None:
    run = advance(make_run("nested", depth=2))
    [below] = children(run)
    advance(below)
    cancel(run, by=actors.SYSTEM, reason="not wanted")
    Sweeper().children()
    Sweeper().children()
    assert [each.status for each in (*children(run), *children(below))] == ["cancelled"] * 2


@pytest.fixture
def crash(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Do something that crashes at a named point."""

    def do(point: str, call: Any, *args: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setenv("HOLDPOINT_CRASH", f"{point}:raise:1:{tmp_path / f'{point}-hits'}")
            with pytest.raises(crash_points.Crashed):
                call(*args)

    return do


@pytest.mark.parametrize("point", first_alone(["beside_undo_child", "after_order", "before_order"]))
def test_a_child_is_undone_once_whoever_died(crash: Any, ledger: Path, point: str) -> None:
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


def end_uncounted(parent: Run, name: str) -> None:
    """Take the child to its end, and leave the parent as it was."""
    parent.refresh_from_db()
    advance(child(parent, name))
    before = {"status": parent.status, "awaited": parent.awaited, "version": parent.version}
    Run.objects.filter(pk=parent.pk).update(**before, wake_at=None)
    parent.refresh_from_db()


def swept(run: Run) -> list[int]:
    """The version with each event by which the system queued the run."""
    told = Event.objects.filter(kind="run.queued", subject=f"run:{run.pk}", actor="system").order_by("id")
    return list(told.values_list("version", flat=True))


def test_the_sweeper_wakes_a_parent_whose_children_have_all_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    run = advance(make_parent("a", "b"))
    end_uncounted(run, "a")
    end_uncounted(run, "b")
    assert (run.status, run.awaited) == ("waiting", 2)
    rung: list[int] = []
    monkeypatch.setattr(doorbell, "ring", lambda number, queue, priority: rung.append(number))
    Sweeper().children()
    version = run.version + 1
    run.refresh_from_db()
    assert (run.status, run.version, swept(run), rung.count(run.pk)) == ("queued", version, [version], 1)
    assert state(to_rest(run))["found"] == ["found a", "found b"]


def test_a_parent_whose_children_live_sleeps_on_and_so_does_one_that_waits_for_a_person() -> None:
    run, asking = advance(make_parent("a", "b", need="first")), to_rest(make_parent("a", modes={"look": ""}))
    assert (asking.status, asking.awaited) == ("waiting", 0)
    assert sweeps.uncounted(run.pk - 1, 10) == ([], 0)
    assert sweeps.wake([asking.pk]) == 0
    assert [Run.objects.get(pk=each.pk).status for each in (run, asking)] == ["waiting"] * 2


def test_a_child_that_ends_as_its_parent_is_woken_changes_nothing_of_that() -> None:
    run = advance(make_parent("a", "b"))
    end_uncounted(run, "a")
    last = child(run, "b")
    meet_lock(partial(sweeps.wake, [run.pk]), partial(engine.advance, last.pk))
    assert len(swept(run)) == 1
    assert state(to_rest(run))["found"] == ["found a", "found b"]


def test_a_sweeper_leaves_a_parent_to_the_child_that_ends_at_this_moment() -> None:
    run = advance(make_parent("a", "b"))
    end_uncounted(run, "a")
    last = child(run, "b")
    meet_lock(partial(engine.advance, last.pk), Sweeper().children)
    run.refresh_from_db()
    assert (run.status, run.awaited, last.pk) == ("waiting", 1, child(run, "b").pk)
    Sweeper().children()
    assert state(to_rest(run))["found"] == ["found a", "found b"]


def test_a_sweeper_that_dies_as_it_wakes_one_has_woken_none(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [advance(make_parent("a")) for _ in range(2)]
    for run in runs:
        end_uncounted(run, "a")
    woken: list[int] = []
    wake = Run.wake

    def dies(run: Run, by: Any) -> bool:
        if woken:
            raise SystemExit
        woken.append(run.pk)
        return wake(run, by)

    with monkeypatch.context() as patch:
        patch.setattr(Run, "wake", dies)
        with pytest.raises(SystemExit):
            ChildSweep()()
    assert [Run.objects.get(pk=run.pk).status for run in runs] == ["waiting"] * 2
    assert [swept(run) for run in runs] == [[], []]
    ChildSweep()()
    assert [Run.objects.get(pk=run.pk).status for run in runs] == ["queued"] * 2


def test_a_pass_looks_at_some_of_the_parents_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.serving.sweeps.LOOKED_AT", 2)
    runs = [advance(make_parent("a")) for _ in range(5)]
    for run in runs:
        end_uncounted(run, "a")
    pass_of = ChildSweep(awaited=runs[0].pk - 1)
    for woken in (2, 4, 5):
        pass_of()
        assert [Run.objects.get(pk=run.pk).status for run in runs].count("queued") == woken


def left_behind(ledger: Path, *names: str) -> Run:
    """A run that waits until children of an earlier branch are undone, whose order nobody has carried out yet."""
    run = to_rest(make_run("payroll", ledger=str(ledger), names=list(names), modes={"look": ""}))
    patch: list[Any] = [{"op": "replace", "path": "/names", "value": []}]
    rewind.edit(run, at=trail(run).index(("step", "pay_all")), patch=patch, by=ann(run.team))
    decide(to_rest(run))
    advance(run)
    assert (run.status, run.awaited, statuses(run)) == ("waiting", len(names), ["completed"] * len(names))
    return run


def test_a_parent_is_not_held_by_a_child_that_nobody_can_undo(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its order was carried out, it had ended before, and so nothing ever counted it."""
    run = left_behind(ledger, "a")
    assert sweeps.uncounted(run.pk - 1, 10) == ([], 0)  # it waits for what is to be undone
    with monkeypatch.context() as gone:
        gone.setattr("agents.compatibility.edited_states.known_agent", lambda plan: None)
        gone.setattr("agents.definition.registry.way_of", lambda plan: None)
        child_orders.carry_out(run.pk)
    assert ChildLink.objects.get(parent=run).carried_out
    Sweeper().children()
    assert advance(run).status == "completed"
    assert child(run, "a").status == "completed"


def test_it_is_frozen_once_the_others_are_undone_and_the_parent_ends(ledger: Path) -> None:
    run = left_behind(ledger, "a", "b")
    damaged = child(run, "a")
    with connection.cursor() as cursor:  # behind its digest's back
        cursor.execute("UPDATE checkpoints_checkpoint SET took_us = took_us + 1 WHERE run_id = %s", [damaged.pk])
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


@pytest.fixture
def parents(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """Three runs of which a pass takes one."""
    monkeypatch.setattr("agents.serving.sweeps.AT_ONCE", 1)
    return [advance(make_parent(*"abcd")) for _ in range(3)]


def test_orders_that_stay_open_do_not_hide_those_of_later_runs(
    parents: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lowest numbers kept their places in each pass for as long as nobody knew what came of an effect."""
    for run in parents:
        ChildLink.objects.filter(run=child(run, "a")).update(ordered="cancel")
    reached: list[int] = []

    def carry_out(parent: int) -> int:
        reached.append(parent)
        return 1

    monkeypatch.setattr(child_orders, "carry_out", carry_out)
    sweep = ChildSweep(ordered=parents[0].pk - 1)
    for _ in parents:
        sweep()
    assert reached == [run.pk for run in parents]


def test_held_children_that_cannot_go_yet_do_not_hide_those_of_later_runs(parents: list[Run]) -> None:
    last = parents[-1]
    Run.objects.filter(pk=child(last, "a").pk).update(status="waiting", token=1)
    sweep = ChildSweep(released=parents[0].pk - 1)
    for _ in parents:
        sweep()
    assert child(last, "d").status == "queued"
