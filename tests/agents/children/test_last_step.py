"""The last step of a run starts children, and does not simply succeed.

What nothing counted on stayed done for good where it was skipped, and was undone after the run had ended where it was
tried again. What a person accepted was undone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.models import ChildLink
from agents.moves.cancel import cancel
from agents.waits.suspend import wake_now
from approvals.consequences.gate import GateImpacts
from checkpoints import actors
from checkpoints.models import Run
from tests.factories.driven_runs import advance, answer, make_run, open_gate, state

from .families import child, children, statuses, to_rest, worked


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """What the children did outside, a line each."""
    return tmp_path / "ledger"


def failed(ledger: Path) -> Run:
    """A run whose last step has failed, since one of its two children, which both paid, was cancelled."""
    run = to_rest(make_run("strict", ledger=str(ledger), names=["a", "b"], modes={"b": "sleep"}))
    cancel(child(run, "b"), by=actors.SYSTEM, reason="not wanted")
    return to_rest(run)


def said(run: Run, choice: str) -> list[str]:
    """What is said to become of the children by this answer."""
    gate = open_gate(run)
    found = GateImpacts(gate, gate.standing().card, gate.standing().state_patch).answering(choice)
    assert found is not None
    return [str(each.fate) for each in found.children]


def test_if_it_is_skipped_what_they_did_is_undone(ledger: Path) -> None:
    run = failed(ledger)
    assert said(run, "skip") == ["undone", "undone"]
    answer(run, "skip")
    assert to_rest(run).status == "completed"
    assert (worked(ledger)[:2], sorted(worked(ledger)[2:])) == (["pay a", "pay b"], ["take back a", "take back b"])


def test_if_it_is_tried_again_the_one_that_was_lost_is_undone_before_the_run_ends(ledger: Path) -> None:
    run = failed(ledger)
    lost = child(run, "b")
    answer(run, "retry")
    advance(run)
    anew = advance(child(run, "b"))
    wake_now(anew, by=actors.SYSTEM)
    advance(anew)
    run.refresh_from_db()
    assert (advance(run).status, run.reason) == ("waiting", f"Waits until R-{lost.pk} is undone")
    assert to_rest(run).status == "completed"
    assert worked(ledger) == ["pay a", "pay b", "pay b", "take back b"]


def test_if_a_person_accepts_what_was_refused_they_stand(ledger: Path) -> None:
    run = to_rest(make_run("strict", ledger=str(ledger), names=["a"], modes={"strict": ""}))
    assert said(run, "accept") == ["stands"]
    answer(run, "accept")
    run = to_rest(run)
    assert (run.status, state(run)["paid"], statuses(run)) == ("completed", ["a, told"], ["completed"])
    assert worked(ledger) == ["pay a"]
    assert ChildLink.objects.get(run=children(run)[0]).landings == [run.head]
