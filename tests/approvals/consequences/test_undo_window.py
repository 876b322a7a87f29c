"""Nothing runs within the undo window, and at its end no more than its people were shown."""

from __future__ import annotations

import datetime as dt

from agents.models import Effect
from agents.moves import fork as forks
from agents.serving.sweeper import Sweeper
from approvals.models import Decision
from tests.agents.moves.moved_runs import lines
from tests.approvals.decisions.undoing.windows import end_window, now, pass_window
from tests.factories import ann, make_policy, make_team, make_user
from tests.factories.driven_runs import advance_to_rest, decide, make_run, open_gate

WINDOW = dt.timedelta(minutes=2)


def test_nothing_is_performed_before_the_sweeper_ends_the_window_and_once_after_it(ledger: str) -> None:
    team = make_team()
    make_policy(team, name="default", undo_window=WINDOW)
    run = advance_to_rest(make_run("booking", ledger=ledger, team=team))
    gate = open_gate(run)
    decide(run)
    before = lines(ledger)
    assert advance_to_rest(run).status == "waiting"
    assert lines(ledger) == before
    assert not Effect.objects.filter(run=run).exists()
    pass_window(gate)
    assert Sweeper().sweep_once()["settled"] >= 1  # other tests may have left some
    assert now(gate).status == "decided"
    assert advance_to_rest(run).status == "completed"
    assert len(lines(ledger)) == len(set(lines(ledger))) > len(before)


def test_what_would_be_repeated_by_then_and_nobody_confirmed_is_not_let_run(ledger: str) -> None:
    """A fork booked the same within the window: the approval would have booked it twice."""
    team = make_team()
    make_policy(team, name="default", undo_window=WINDOW)
    later = advance_to_rest(make_run("booking", ledger=ledger, team=team))
    other = open_gate(later)
    branch = advance_to_rest(forks.fork(later, at=1, by=make_user("Forker", team), patch=[
        {"op": "replace", "path": "/size", "value": 3}]))  # fmt: skip
    person = ann(team)
    decide(later, by=person, confirm=[])
    decide(branch, by=person)
    end_window(open_gate(branch))
    assert advance_to_rest(branch).status == "completed"
    assert end_window(other)
    assert now(other).status == "open"
    assert now(other).settles_at is None
    assert not Decision.objects.get(gate=other).counts
    done = list(Effect.objects.filter(run=branch).values_list("pk", flat=True))
    decide(later, by=person, confirm=done)
    assert end_window(other)
    assert now(other).status == "decided"
