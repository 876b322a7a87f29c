"""An end that nobody counted, such as one that a worker of an older release wrote, leaves no parent asleep."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agents.compatibility import deployed
from agents.definition import registry
from agents.models import ChildLink
from agents.moves import child_orders, rewind
from agents.ringing import doorbell, queues
from agents.runner import engine
from agents.serving import child_sweep
from agents.serving.child_sweep import ChildSweep
from agents.serving.sweeper import Sweeper
from checkpoints.models import Event, Run
from tests.factories import ann
from tests.factories.driven_runs import advance, decide, make_run, state, trail
from tests.harness.racing_threads import meet_lock

from .families import child, make_parent, to_rest


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
    assert child_sweep.uncounted(run.pk - 1, 10) == ([], 0)
    assert child_sweep.wake([asking.pk]) == 0
    assert [Run.objects.get(pk=each.pk).status for each in (run, asking)] == ["waiting"] * 2


def test_one_that_is_woken_while_another_works_counts_anew() -> None:
    run = advance(make_parent("a", "b"))
    end_uncounted(run, "a")
    Sweeper().children()
    advance(run)
    assert (run.status, run.awaited) == ("waiting", 1)
    Sweeper().children()
    assert Run.objects.get(pk=run.pk).status == "waiting"
    assert state(to_rest(run))["found"] == ["found a", "found b"]


def test_a_child_that_ends_as_its_parent_is_woken_changes_nothing_of_that() -> None:
    run = advance(make_parent("a", "b"))
    end_uncounted(run, "a")
    last = child(run, "b")
    meet_lock(partial(child_sweep.wake, [run.pk]), partial(engine.advance, last.pk))
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


def test_a_doorbell_that_is_lost_is_rung_in_the_next_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    run = advance(make_parent("a"))
    end_uncounted(run, "a")
    with doorbell.silenced():
        ChildSweep()()
    rung: list[int] = []
    queues.client().delete(registry.queue_for(run.plan))
    monkeypatch.setattr(doorbell, "ring", lambda number, *_: not rung.append(number))  # type: ignore[func-returns-value]
    Sweeper().ring_due()
    assert run.pk in rung


def test_a_pass_looks_at_some_of_the_parents_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents.serving.child_sweep.LOOKED_AT", 2)
    runs = [advance(make_parent("a")) for _ in range(5)]
    for run in runs:
        end_uncounted(run, "a")
    pass_of = ChildSweep(awaited=runs[0].pk - 1)
    for woken in (2, 4, 5):
        pass_of()
        assert [Run.objects.get(pk=run.pk).status for run in runs].count("queued") == woken


def left_behind(tmp_path: Path) -> Run:
    """A run that waits until a child of an earlier branch is undone, whose order nobody has carried out yet."""
    run = to_rest(make_run("payroll", ledger=str(tmp_path / "ledger"), names=["a"], modes={"look": ""}))
    patch: list[Any] = [{"op": "replace", "path": "/names", "value": []}]
    rewind.edit(run, at=trail(run).index(("step", "pay_all")), patch=patch, by=ann(run.team))
    decide(to_rest(run))
    advance(run)
    assert (run.status, run.awaited, child(run, "a").status) == ("waiting", 1, "completed")
    return run


def test_an_ended_child_that_is_to_be_undone_is_waited_for(tmp_path: Path) -> None:
    run = left_behind(tmp_path)
    assert child_sweep.uncounted(run.pk - 1, 10) == ([], 0)
    assert to_rest(run).status == "completed"


def test_a_parent_is_not_held_by_a_child_that_nobody_can_undo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its order was carried out, it had ended before, and so nothing ever counted it."""
    run = left_behind(tmp_path)
    with monkeypatch.context() as gone:
        gone.setattr("agents.compatibility.deployed.of", lambda plan: None)
        gone.setattr("agents.definition.registry.way_of", lambda plan: None)
        child_orders.carry_out(run.pk)
    assert ChildLink.objects.get(parent=run).carried_out
    Sweeper().children()
    assert advance(run).status == "completed"
    assert child(run, "a").status == "completed"


def test_one_that_settles_is_woken_though_a_child_on_which_it_counts_lives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody could undo has no end to be counted, and the other child hid that for as long as it lived."""
    run = to_rest(make_run("overseer", ledger=str(tmp_path / "ledger"), names=["a"]))
    patch: list[Any] = [{"op": "replace", "path": "/names", "value": ["b"]}]
    patch += [{"op": "replace", "path": "/modes", "value": {"b": "sleep"}}]
    rewind.edit(run, at=1, patch=patch, by=ann(run.team))
    advance(run)
    advance(child(run, "b"))
    decide(run)
    advance(run)
    assert (run.status, run.awaited, child(run, "b").status) == ("waiting", 1, "waiting")
    with monkeypatch.context() as gone:
        gone.setattr(deployed, "of", lambda plan: None)
        gone.setattr(registry, "way_of", lambda plan: None)
        child_orders.carry_out(run.pk)
    assert ChildLink.objects.get(run=child(run, "a")).carried_out
    Sweeper().children()
    assert to_rest(run).status == "completed"
    assert child(run, "b").status == "waiting"
