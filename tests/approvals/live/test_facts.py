"""Who hears of an event. Pure: the audience is decided once, from the event alone."""

from __future__ import annotations

from typing import Any

from approvals.live.facts import audience, fact_of
from checkpoints.models import Event
from checkpoints.values.canonical_json import encode_canonical


def make_event(kind: str, subject: str, *, data: dict[str, Any] | None = None, **fields: Any) -> Event:
    """An event of run 7 of team 3, that was never saved."""
    given: dict[str, Any] = {"pk": 5, "xid": 9, "run_id": 7, "team_id": 3, "version": 2, "actor": "system"}
    return Event(kind=kind, subject=subject, data=encode_canonical(data or {}), **(given | fields))


def test_a_saved_step_is_told_to_pages_that_show_the_run_and_to_nobody_else() -> None:
    assert audience(make_event("checkpoint.saved", "checkpoint:x")) == ["run.7"]


def test_a_gate_is_told_to_its_team_its_reviewers_and_the_pages_that_show_it() -> None:
    found = audience(make_event("gate.opened", "gate:42", data={"reviewers": [3, 8, "x", None]}))
    assert found == ["team.3", "reviewers.3", "reviewers.8", "gate.42", "run.7"]


def test_a_run_is_told_to_its_team_and_not_to_reviewers_that_its_data_name() -> None:
    assert audience(make_event("run.started", "run:7", data={"reviewers": [8]})) == ["team.3", "run.7"]


def test_who_waits_for_a_signal_hears_of_signals_and_of_the_runs_end_alone() -> None:
    """They heard of all that a busy run did, and asked again each time."""
    for kind in ("signal.received", "run.completed", "run.failed", "run.cancelled"):
        assert audience(make_event(kind, "run:7")) == ["team.3", "run.7", "signals.7"]
    for kind in ("checkpoint.saved", "run.waiting", "run.queued", "timer.skipped", "gate.opened"):
        assert "signals.7" not in audience(make_event(kind, "run:7"))


def test_a_change_of_access_is_told_to_those_whom_it_is_about_and_to_whoever_stands_in_for_them() -> None:
    user = make_event("user.changed", "user:5", run_id=None, team_id=None)
    assert audience(user) == ["user.5", "lends.5"]
    lent = make_event("delegation.ended", "delegation:1", run_id=None, team_id=None, data={"delegate": "user:6"})
    assert audience(lent) == ["user.6", "lends.6"]
    team = make_event("team.changed", "team:3", run_id=None, data={"joined": [7], "left": [8]})
    assert audience(team) == ["user.7", "lends.7", "user.8", "lends.8", "reviewers.3", "lent.3", "team.3"]


def test_an_event_of_no_team_and_no_run_is_told_to_nobody() -> None:
    assert audience(make_event("seal.made", "seal:1", run_id=None, team_id=None)) == []


def test_a_fact_says_what_happened_and_carries_nothing_else_of_the_data() -> None:
    data = {"title": "Pay?", "reviewers": [3], "secret": "card 4417"}
    fact = fact_of(make_event("gate.opened", "gate:42", data=data), {"gate:42": "Refund?", "gate:43": "Other"})
    assert fact == {
        "cursor": "9.5", "kind": "gate.opened", "subject": "gate:42", "run": "run:7", "version": 2, "title": "Refund?",
    }  # fmt: skip
