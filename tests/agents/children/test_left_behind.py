"""After a rewind a child is what its parent's branch did: taken over where it is equal, undone where it is not.

What it did stays while a fork counts on it; what was undone is not reused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.errors import RewindRefused
from agents.models import ChildLink, Effect
from agents.moves import child_orders, impact, rewind
from agents.moves.cancel import cancel
from agents.moves.fork import fork
from approvals.impact.result import ChildVerdict
from checkpoints import actors, crash_points
from checkpoints.models import Event, Note, Run
from tests.agents.children.families import child, children, statuses, to_rest, worked
from tests.agents.children.pages.test_page import page, part
from tests.agents.steps.killable_workers import KillableWorkers
from tests.checkpoints.retention.pruned_runs import keep, pruned, seqs
from tests.factories import ann
from tests.factories.driven_runs import advance, answer, decide, failures, make_run, open_gate, state, trail
from tests.harness.examples import first_alone


@pytest.fixture
def run(ledger: Path) -> Run:
    """A run that asks at the end, once its child has paid."""
    return to_rest(make_run("payroll", ledger=str(ledger), names=["a"], modes={"look": ""}))


FAN_OUT = ("step", "pay_all")
WITHOUT: list[Any] = [{"op": "replace", "path": "/names", "value": []}]
OTHERWISE: list[Any] = [{"op": "replace", "path": "/before", "value": "otherwise"}]


def payroll(ledger: Path, *names: str, **modes: str) -> Run:
    """A run that asks at the end, once its children have paid these names."""
    run = make_run("payroll", ledger=str(ledger), names=list(names), modes={"look": "", **modes})
    return to_rest(run)


def names(run: Run, *names: str) -> Run:
    """Go back to before the fan-out, and have the run go on with these names."""
    patch: list[Any] = [{"op": "replace", "path": "/names", "value": list(names)}]
    rewind.edit(run, at=before_the_fan_out(run), patch=patch, by=ann(run.team))
    return to_rest(run)


def before_the_fan_out(run: Run) -> int:
    """The number of the checkpoint from which the children were started first."""
    return trail(run).index(("step", "prepare")) + 1


def test_equal_children_are_taken_over_and_nothing_is_done_again(ledger: Path) -> None:
    run = payroll(ledger, "a", "b")
    first = children(run)
    rewind.rewind(run, to=before_the_fan_out(run), by=ann(run.team))
    to_rest(run)
    assert children(run) == first
    assert worked(ledger) == ["pay a", "pay b"]
    assert state(run)["paid"] == ["a, told", "b, told"]
    told = Event.objects.filter(kind="child.adopted", subject=f"run:{run.pk}").count()
    notes = [text for text in Note.objects.filter(run=run).values_list("text", flat=True) if "taken over" in str(text)]
    assert (told, len(notes)) == (2, 2)

    decide(run)
    assert to_rest(run).status == "completed"
    assert statuses(run) == ["completed", "completed"]


def test_one_with_another_configuration_is_not_taken_over(ledger: Path) -> None:
    run = payroll(ledger, "a")
    first = child(run, "a")
    patch: list[Any] = [{"op": "replace", "path": "/bank", "value": "second"}]
    rewind.edit(run, at=before_the_fan_out(run), patch=patch, by=ann(run.team))
    to_rest(run)
    assert (len(children(run)), child(run, "a").pk != first.pk) == (2, True)
    assert worked(ledger) == ["pay a", "pay a", "take back a"]


def test_a_fork_that_starts_more_equal_ones_than_its_origin_starts_the_rest(ledger: Path) -> None:
    run = payroll(ledger, "a")
    patch: list[Any] = [{"op": "replace", "path": "/names", "value": ["a", "a"]}]
    made = to_rest(fork(run, at=before_the_fan_out(run), by=ann(run.team), patch=patch))
    assert [each.title for each in children(made)] == ["Child a"]
    assert state(made)["paid"] == ["a, told"] * 2
    assert worked(ledger) == ["pay a"] * 2


def test_one_that_is_lost_while_the_worker_looks_is_not_taken_over(
    ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = payroll(ledger, "a", a="ask")
    rewind.rewind(run, to=before_the_fan_out(run), by=ann(run.team))
    lost = child(run, "a")

    def cancelled(name: str, *_: Any) -> None:
        if name == "before_adopt":
            cancel(lost, by=actors.SYSTEM, reason="not wanted")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(crash_points, "point", cancelled)
        advance(run)
    to_rest(run)
    assert (run.status, child(run, "a").status) == ("waiting", "waiting")
    assert child(run, "a").pk != lost.pk


def test_one_that_asks_is_taken_over_with_its_gate_and_withdrawn_where_an_edit_leaves_it_out(ledger: Path) -> None:
    run = payroll(ledger, "a", "b", a="ask")
    gate = open_gate(child(run, "a"))
    rewind.rewind(run, to=1, by=ann(run.team))
    to_rest(run)
    gate.refresh_from_db()
    assert (gate.status, run.status, len(children(run))) == ("open", "waiting", 2)
    names(run, "b")
    gate.refresh_from_db()
    assert (gate.status, child(run, "a").status) == ("withdrawn", "cancelled")
    assert child(run, "a").reason == f"R-{run.pk}, which started it, goes on without it."


def test_what_was_left_behind_is_undone_before_the_run_ends(ledger: Path) -> None:
    """The new branch never comes to the step: the run waits until the child is undone, and ends then."""
    run = payroll(ledger, "a", "b")
    names(run)  # no children at all
    assert worked(ledger) == ["pay a", "pay b"]
    decide(run)
    advance(run)
    assert run.status == "waiting"
    assert run.reason.startswith("Waits until 2 runs are undone: R-")
    run.wake(by=actors.SYSTEM)  # too early: it orders nothing twice
    advance(run)
    assert Event.objects.filter(kind="child.ordered", subject=f"run:{run.pk}").count() == 1
    assert to_rest(run).status == "completed"
    assert (worked(ledger)[:2], sorted(worked(ledger)[2:])) == (["pay a", "pay b"], ["take back a", "take back b"])
    assert statuses(run) == ["cancelled", "cancelled"]


def test_what_cannot_be_undone_is_kept(ledger: Path) -> None:
    run = payroll(ledger, "a", a="final")
    names(run, "b")
    assert worked(ledger) == ["pay a", "tell a", "pay b", "take back a"]
    kept = Effect.objects.filter(run=child(run, "a"), undoes__isnull=True).order_by("pk")
    assert [(row.step, row.status) for row in kept] == [("pay", "undone"), ("tell", "kept")]


@pytest.mark.long
def test_one_whose_beginning_retention_removed_is_undone_all_the_same(ledger: Path) -> None:
    run = payroll(ledger, "a")
    keep(child(run, "a"), keep_last=1)
    pruned()
    assert seqs(child(run, "a"))[0] > 1
    names(run, "b")
    gone = child(run, "a")
    assert (gone.status, worked(ledger)) == ("cancelled", ["pay a", "pay b", "take back a"])
    decide(run)
    assert to_rest(run).status == "completed"


def test_children_of_a_step_that_failed_and_was_caught_are_undone(ledger: Path) -> None:
    """No state counts on them; of a step that catches the error itself and returns they stand."""
    run = to_rest(make_run("rash", ledger=str(ledger)))
    assert (run.status, state(run)["told"]) == ("completed", "caught")
    assert (worked(ledger), child(run, "a").status) == (["pay a", "take back a"], "cancelled")
    run = to_rest(make_run("rash", ledger=str(ledger), swallows=True))
    assert (run.status, state(run)["told"]) == ("completed", "swallowed")
    assert (worked(ledger)[2:], child(run, "a").status) == (["pay a"], "completed")


def test_where_an_undo_fails_a_person_is_asked_and_the_parent_waits(ledger: Path) -> None:
    run = payroll(ledger, "a", a="stuck")
    names(run)
    decide(run)
    to_rest(run)
    asked = child(run, "a")
    assert (run.status, run.awaited, asked.status) == ("waiting", 1, "waiting")
    answer(asked, "undone")
    assert to_rest(run).status == "completed"
    assert child(run, "a").status == "cancelled"


def test_a_state_that_counts_on_a_child_which_was_undone_is_no_place_to_go_back_to(ledger: Path) -> None:
    run = payroll(ledger, "a", "b")
    held = Run.objects.get(pk=run.pk).seq
    names(run, "b")
    with pytest.raises(RewindRefused, match=f"counts on R-{child(run, 'a').pk}, which was undone since"):
        rewind.rewind(run, to=held, by=ann(run.team))


def test_a_step_that_is_reused_goes_on_counting_on_its_children(ledger: Path) -> None:
    run = payroll(ledger, "a")
    rewind.edit(run, at=1, patch=OTHERWISE, by=ann(run.team))
    to_rest(run)
    assert ("reused", "pay_all") in trail(run)
    decide(run)
    assert to_rest(run).status == "completed"
    assert worked(ledger) == ["pay a"]
    assert len(ChildLink.objects.get(parent=run).landings) == 2


def test_a_run_that_is_cancelled_settles_what_it_left_behind_and_keeps_the_rest(ledger: Path) -> None:
    run = payroll(ledger, "a", "b", b="sleep")
    names(run, "b")
    run = Run.objects.get(pk=run.pk)
    assert run.status == "waiting"
    cancel(run, by=actors.SYSTEM, reason="not wanted")
    assert to_rest(run).status == "cancelled"
    assert worked(ledger) == ["pay a", "pay b", "take back a"]


@pytest.mark.parametrize("place", first_alone(["before_adopt@pay_all", "after_save@pay_all"]))
def test_a_worker_that_is_killed_as_it_takes_children_over(place: str, ledger: Path, workers: KillableWorkers) -> None:
    run = payroll(ledger, "a", "b")
    patch: list[Any] = [{"op": "replace", "path": "/names", "value": ["a", "c"]}]
    rewind.edit(run, at=before_the_fan_out(run), patch=patch, by=ann(run.team))
    if place != "before_adopt@pay_all":
        advance(run)
        advance(child(run, "c"))
    workers.kill(run, place)
    to_rest(run)
    assert [child(run, each).status for each in "abc"] == ["completed", "cancelled", "completed"]
    assert worked(ledger) == ["pay a", "pay b", "pay c", "take back b"]


@pytest.mark.parametrize("place", first_alone(["after_undo@pay", "before_settle"]))
def test_a_worker_that_is_killed_as_children_are_undone(place: str, ledger: Path, workers: KillableWorkers) -> None:
    run = payroll(ledger, "a")
    names(run)
    decide(run)
    if place == "before_settle":
        workers.kill(run, place)
    else:
        advance(run)
        child_orders.carry_out(run.pk)
        workers.kill(child(run, "a"), place)
    to_rest(run)
    if child(run, "a").status == "waiting":  # nobody knows whether the undo was sent
        answer(child(run, "a"), "undone")
        to_rest(run)
    assert (run.status, child(run, "a").status) == ("completed", "cancelled")
    assert worked(ledger).count("take back a") <= 1


def forked(run: Run, at: int, patch: list[Any] | None = None) -> Run:
    """A fork that has come to its gate, beyond the fan-out."""
    made = to_rest(fork(run, at=at, by=ann(run.team), patch=patch or []))
    assert (made.status, state(made)["paid"]) == ("waiting", ["a, told"])
    assert children(made) == []
    return made


def leave_behind(run: Run) -> None:
    """Have the run go on without its children, to its end."""
    decide(names(run))
    assert to_rest(run).status == "completed"


def test_one_on_which_the_start_of_a_fork_counts_stays(run: Run, ledger: Path) -> None:
    before = trail(run).index(FAN_OUT)
    assert [each.fate for each in impact.of_edit(run, before, WITHOUT).children] == [ChildVerdict.MAY_UNDONE]
    made = forked(run, before + 1)
    assert [each.fate for each in impact.of_edit(run, before, WITHOUT).children] == [ChildVerdict.STANDS]
    assert 'id="children"' in page(made)
    leave_behind(run)
    assert (worked(ledger), statuses(run)) == (["pay a"], ["completed"])
    assert "abandoned; kept, since a fork or its origin counts on it" in part(page(run), "children")


@pytest.mark.parametrize("how", ["read", "reused", pytest.param("pruned", marks=pytest.mark.long)])
def test_one_whose_result_a_fork_has_taken_stays(how: str, run: Run, ledger: Path) -> None:
    """Only checkpoints that were still there counted, so what an old fork had taken was undone."""
    if how == "read":  # of an equal one, which gave it what the origin's did; and it went back since
        modes: list[Any] = [{"op": "replace", "path": "/modes", "value": {"look": "", "b": ""}}]
        made = forked(run, trail(run).index(FAN_OUT), modes)
        assert FAN_OUT in trail(made)
        rewind.edit(made, at=1, patch=WITHOUT, by=ann(run.team))
        to_rest(made)
    else:
        made = forked(run, 1, OTHERWISE)
        assert ("reused", "pay_all") in trail(made)
    if how == "pruned":
        decide(made)
        assert to_rest(made).status == "completed"
        keep(made, keep_last=1)
        pruned()
        assert len(seqs(made)) == 1
    leave_behind(run)
    assert (worked(ledger), statuses(run)) == (["pay a"], ["completed"])


def test_a_fork_reuses_no_step_that_counts_on_one_which_was_undone(run: Run, ledger: Path) -> None:
    leave_behind(run)
    made = to_rest(fork(run, at=1, by=ann(run.team)))
    assert FAN_OUT in trail(made)
    assert len(children(made)) == 1
    assert worked(ledger) == ["pay a", "take back a", "pay a"]


def test_one_that_is_undone_before_the_fork_lands_is_done_again_for_it(
    run: Run, ledger: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = fork(run, at=1, by=ann(run.team), patch=[{"op": "replace", "path": "/names", "value": ["a", "b"]}])
    advance(made)
    assert [each.title for each in children(made)] == ["Child b"]
    advance(child(made, "b"))

    def undone_first(name: str, step: str = "", *_: Any) -> None:
        if (name, step) == ("after_step", "pay_all"):
            meanwhile.undo()
            leave_behind(run)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(crash_points, "point", undone_first)
        advance(made)
    assert [each.error for each in failures(made)] == ["what another run did for this step was undone meanwhile"]
    to_rest(made)
    assert state(made)["paid"] == ["a, told", "b, told"]
    assert sorted(worked(ledger)) == ["pay a", "pay a", "pay b", "take back a"]
    assert child(made, "a").status == "completed"
