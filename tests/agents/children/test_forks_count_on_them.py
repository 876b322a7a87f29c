"""What a child did stays while a fork counts on it, whatever its parent leaves behind; what was undone is not reused.

The parent went back, and took back what the state of its fork says is paid.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents.errors import RewindRefused
from agents.moves import impact, rewind
from agents.moves.fork import fork
from approvals.impact.result import ChildVerdict
from checkpoints import crash_points
from checkpoints.models import Run
from tests.agents.children.pages.test_page import page, part
from tests.checkpoints.retention.pruned_runs import keep, pruned, seqs
from tests.factories import ann
from tests.factories.driven_runs import advance, decide, failures, make_run, state, trail

from .families import child, children, statuses, to_rest, worked


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run that asks at the end, once its child has paid."""
    return to_rest(make_run("payroll", ledger=str(tmp_path / "ledger"), names=["a"], modes={"look": ""}))


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What the children did outside, a line each."""
    return tmp_path / "ledger"


FAN_OUT = ("step", "pay_all")
WITHOUT: list[Any] = [{"op": "replace", "path": "/names", "value": []}]
OTHERWISE: list[Any] = [{"op": "replace", "path": "/before", "value": "otherwise"}]


def forked(run: Run, at: int, patch: list[Any] | None = None) -> Run:
    """A fork that has come to its gate, beyond the fan-out."""
    made = to_rest(fork(run, at=at, by=ann(run.team), patch=patch or []))
    assert (made.status, state(made)["paid"]) == ("waiting", ["a, told"])
    assert children(made) == []
    return made


def leave_behind(run: Run) -> None:
    """Have the run go on without its children, to its end."""
    before = trail(run).index(FAN_OUT)
    rewind.edit(run, at=before, patch=WITHOUT, by=ann(run.team))
    to_rest(run)
    decide(run)
    assert to_rest(run).status == "completed"


def test_one_on_which_the_start_of_a_fork_counts_stays(run: Run, ledger: Path) -> None:
    forked(run, trail(run).index(FAN_OUT) + 1)
    leave_behind(run)
    assert (worked(ledger), statuses(run)) == (["pay a"], ["completed"])


def test_one_whose_result_a_fork_has_read_stays(run: Run, ledger: Path) -> None:
    """The fork started an equal one, which gave it what the origin's did, and went back since."""
    modes: list[Any] = [{"op": "replace", "path": "/modes", "value": {"look": "", "b": ""}}]
    made = forked(run, trail(run).index(FAN_OUT), modes)
    assert FAN_OUT in trail(made)
    rewind.edit(made, at=1, patch=WITHOUT, by=ann(run.team))
    to_rest(made)
    leave_behind(run)
    assert (worked(ledger), statuses(run)) == (["pay a"], ["completed"])


def test_one_whose_step_a_fork_has_reused_stays(run: Run, ledger: Path) -> None:
    made = forked(run, 1, OTHERWISE)
    assert ("reused", "pay_all") in trail(made)
    leave_behind(run)
    assert (worked(ledger), statuses(run)) == (["pay a"], ["completed"])


def test_it_stays_too_once_retention_has_removed_where_the_fork_counts_on_it(run: Run, ledger: Path) -> None:
    """Only checkpoints that were still there counted, so what an old fork had taken was undone."""
    made = forked(run, 1, OTHERWISE)
    decide(made)
    assert to_rest(made).status == "completed"
    keep(made, keep_last=1)
    pruned()
    assert len(seqs(made)) == 1
    leave_behind(run)
    assert (worked(ledger), statuses(run)) == (["pay a"], ["completed"])


def test_its_remark_says_that_it_stays(run: Run) -> None:
    """The page said that it would be undone."""
    made = forked(run, trail(run).index(FAN_OUT) + 1)
    rewind.edit(run, at=trail(run).index(FAN_OUT), patch=WITHOUT, by=ann(run.team))
    to_rest(run)
    assert "abandoned; kept, since a fork or its origin counts on it" in part(page(run), "children")
    assert 'id="children"' in page(made)


def test_the_remark_says_so_too_where_a_fork_has_read_its_result(run: Run) -> None:
    forked(run, 1, OTHERWISE)
    rewind.edit(run, at=trail(run).index(FAN_OUT), patch=WITHOUT, by=ann(run.team))
    assert "abandoned; kept, since a fork or its origin counts on it" in part(page(to_rest(run)), "children")


def test_the_remark_says_else_undone_where_the_fork_began_before(run: Run) -> None:
    fork(run, at=1, by=ann(run.team), patch=WITHOUT)
    rewind.edit(run, at=trail(run).index(FAN_OUT), patch=WITHOUT, by=ann(run.team))
    assert "else undone" in part(page(to_rest(run)), "children")


def test_the_impact_says_that_it_stays(run: Run) -> None:
    before = trail(run).index(FAN_OUT)
    assert [each.fate for each in impact.of_edit(run, before, WITHOUT).children] == [ChildVerdict.MAY_UNDONE]
    forked(run, before + 1)
    assert [each.fate for each in impact.of_edit(run, before, WITHOUT).children] == [ChildVerdict.STANDS]
    rewind.edit(run, at=before, patch=WITHOUT, by=ann(run.team))
    to_rest(run)
    with pytest.raises(RewindRefused, match="has left no effects"):
        rewind.settle_now(run, by=ann(run.team))


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
