"""A gate that is opened again keeps what was refused and passed by, and refuses nothing that is done."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.moves import rewind
from approvals.errors import Invalid
from checkpoints.models import Checkpoint, Run
from tests.factories import make_user
from tests.factories.driven_runs import advance_to_rest, decide, open_gate, trail

from .verdict_forms import APPROVE, lines, make_three, reject, say

CHANGE = [{"op": "replace", "path": "/two/amount", "value": 9}]


def reopened(run: Run, *, at: str, kind: str = "step") -> Run:
    """Somebody changes what `do_two` would do, after the step `at`: its approval does not hold any more."""
    seq = Checkpoint.objects.filter(run=run, step=at, kind=kind).order_by("-seq")[0].seq
    rewind.edit(run, at=seq, patch=CHANGE, by=make_user("Bob Lindqvist", run.team))
    advance_to_rest(run)
    assert trail(run)[-1] == ("reopen", "do_two")
    return run


def test_what_was_refused_and_passed_by_stays_refused(ledger: Path) -> None:
    run = make_three(ledger)
    say(run, each={"a": reject("Too dear."), "b": APPROVE, "c": reject("Later.")})
    advance_to_rest(run)
    reopened(run, at="do_one", kind="skipped")
    a, b, c = open_gate(run).asked.actions
    assert (a.settled and a.settled.reason, a.verdicts) == ("Too dear.", ("reject",))
    assert (b.settled, b.verdicts) == (None, ("approve", "edit", "reject"))
    assert c.settled is not None
    with pytest.raises(Invalid, match="does not take approve"):
        say(run, each={"a": APPROVE, "b": APPROVE, "c": {"verdict": "reject"}})
    decide(run)
    assert advance_to_rest(run).status == "completed"
    assert [line for line in lines(ledger) if line.startswith(("one", "three"))] == []
    assert "two 9" in lines(ledger)


def test_what_is_done_cannot_be_refused_there(ledger: Path) -> None:
    run = make_three(ledger)
    say(run, each={"a": APPROVE, "b": APPROVE, "c": reject("Later.")})
    advance_to_rest(run)
    reopened(run, at="do_one")
    assert open_gate(run).asked.actions[0].verdicts == ("approve", "edit")
    with pytest.raises(Invalid, match="does not take reject"):
        say(run, each={"a": reject(), "b": APPROVE, "c": {"verdict": "reject"}})
    say(run, each={"a": APPROVE, "b": reject("Not at nine."), "c": {"verdict": "reject"}})
    assert advance_to_rest(run).status == "completed"
    assert [line for line in lines(ledger) if line.startswith("one")] == ["one 1"]
    assert "two 9" not in lines(ledger)
