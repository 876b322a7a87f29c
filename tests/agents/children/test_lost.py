"""A child that was lost is started anew only where a person has its step tried again.

It was started anew, and did everything again, as soon as anybody decided a gate beside the run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.models import ChildLink
from checkpoints import actors
from checkpoints.models import Run
from tests.factories.driven_runs import advance, answer, decide, make_run, open_gate, state

from .families import child, children, statuses, to_rest, worked


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What the children did outside, a line each."""
    return tmp_path / "ledger"


def waiting(ledger: Path, need: int, **modes: str) -> Run:
    """A run that waits for so many of its payments, with a gate open beside it."""
    run = make_run("asks_beside", ledger=str(ledger), names=["a", "b", "c"], modes=modes, need=need)
    return to_rest(run)


def test_a_decision_beside_the_run_starts_no_lost_child_again(ledger: Path) -> None:
    run = waiting(ledger, 2, a="sleep", b="sleep")
    first = children(run)
    child(run, "a").cancel(by=actors.SYSTEM, reason="not wanted")
    assert open_gate(run).step == "agree"
    decide(run)
    run = to_rest(run)
    assert run.status == "waiting"
    assert children(run) == first
    assert sorted(worked(ledger)) == ["pay a", "pay b", "pay c"]


def test_the_losers_of_the_first_are_not_started_again(ledger: Path) -> None:
    run = waiting(ledger, 1, a="sleep", b="sleep", wait="")
    assert statuses(run) == ["cancelled", "cancelled", "completed"]
    decide(run)
    run = to_rest(run)
    assert run.reason == "Waits for the signal go"
    assert statuses(run) == ["cancelled", "cancelled", "completed"]


def test_where_a_person_has_it_tried_again_they_are_started_anew(ledger: Path) -> None:
    run = waiting(ledger, 3, a="sleep", b="sleep")
    decide(run)
    to_rest(run)
    child(run, "a").cancel(by=actors.SYSTEM, reason="not wanted")
    to_rest(run)
    answer(run, "retry")
    run = to_rest(run)
    assert statuses(run)[:2] == ["cancelled", "cancelled"]
    assert len(children(run)) == 5
    assert ChildLink.objects.filter(parent=run, ordered="").count() == 4
    assert not state(run)["paid"]
    child(run, "a").cancel(by=actors.SYSTEM, reason="not wanted again")
    run = advance(run)
    assert len(children(run)) == 5
