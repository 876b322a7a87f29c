"""Runs over the API."""

from __future__ import annotations

from checkpoints import actors
from tests.factories import READER, ann, make_gate, make_run, make_team, make_user

from .sent_requests import ask, walk


def test_pages_of_runs_follow_each_other_without_a_gap_or_a_repeat_while_runs_are_added() -> None:
    team = make_team()
    reader = ann(team)
    made = [make_run(team=team).pk for _ in range(7)]
    first = ask(reader, "/api/runs", limit=3)
    make_run(team=team)
    rest = [run["id"] for run in ask(reader, "/api/runs", limit=200, cursor=first["next"])["items"]]
    assert [run["id"] for run in first["items"]] + rest == made[::-1]


def test_a_last_page_that_is_full_says_that_it_is_the_last() -> None:
    team = make_team()
    made = [make_run(team=team).pk for _ in range(4)]
    assert [run["id"] for run in walk(ann(team), "/api/runs", limit=2)] == made[::-1]
    assert ask(ann(team), "/api/runs", limit=4)["next"] is None


def test_runs_can_be_asked_for_by_status() -> None:
    team = make_team()
    queued, waiting = make_run(team=team), make_gate(team=team).run
    cancelled = make_run(team=team)
    cancelled.cancel(by=actors.SYSTEM, reason="Not needed")
    found = {
        status: [run["id"] for run in walk(ann(team), "/api/runs", limit=1, status=status)]
        for status in ("queued", "waiting", "cancelled", "completed")
    }
    assert found == {"queued": [queued.pk], "waiting": [waiting.pk], "cancelled": [cancelled.pk], "completed": []}


def test_a_run_says_where_it_stands_and_which_gate_holds_it() -> None:
    team = make_team(may=READER)
    bob = make_user("Bob Lindqvist", team)
    gate = make_gate(team=team, started_by=bob)
    found = ask(ann(team), f"/api/runs/{gate.run_id}")
    assert found == ask(ann(team), "/api/runs")["items"][0]
    assert (found["status"], found["gates"], found["started_by"]) == ("waiting", [gate.pk], "Bob Lindqvist")
    assert (found["team"], found["agent"], found["seq"]) == (team.name, gate.run.plan.agent, 1)
    assert found["created_at"] == gate.run.created_at.isoformat().replace("+00:00", "Z")


def test_a_member_who_may_not_view_runs_sees_none() -> None:
    team = make_team(may=())
    make_run(team=team)
    assert ask(ann(team), "/api/runs")["items"] == []
