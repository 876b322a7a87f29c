"""The pages of agents: what each does, how it went, and a form that starts a run."""

from __future__ import annotations

import re

from agents import figures
from agents.presentation import plan, versions
from checkpoints.models import Run
from tests.approvals.statements import sent
from tests.factories import ann, bob, decide, eve, make_plan, make_run, make_spec, make_team, make_user
from tests.factories.runs import STEPS
from tests.pages.clients import signed_in
from tests.run_pages.orders.forms import said
from tests.run_pages.walks import held

ALLOWED = ("checkpoints.view_run", "checkpoints.start_run")


def test_a_member_sees_the_agents_that_their_teams_run_or_may_start() -> None:
    team = make_team()
    gate = held(team)
    page = signed_in(bob(team)).get("/agents/").content.decode()
    assert gate.run.plan.agent in page
    assert "refunds" in page
    reader = signed_in(make_user("Rita Reader", make_team(may=("checkpoints.view_run",))))
    assert "refunds" not in reader.get("/agents/").content.decode().split("<main")[1]
    assert signed_in(eve()).get("/agents/refunds/").status_code == 404


def test_the_page_of_an_agent_draws_its_steps_and_says_where_they_lead() -> None:
    team = make_team()
    gate = held(team)
    client = signed_in(bob(team))
    with sent() as statements:
        page = client.get(f"/agents/{gate.run.plan.agent}/").content.decode()
    assert len(statements) <= 12, statements
    text = said(page)
    for word in ("allows pay, reply", "a rejection goes back to propose", "undone by cancel_payment",
                 "cannot be undone", "looks outside the state"):  # fmt: skip
        assert word in text, word
    assert page.split("<main")[1].count('class="bars"') == 2  # the hold line, once


def test_ways_keep_lanes_of_their_own_where_they_overlap() -> None:
    found = plan.ways(make_spec(steps=STEPS))
    assert [(way.kind, way.start, way.end) for way in found] == [("allows", 2, 3), ("allows", 2, 4), ("back", 2, 1)]
    assert plan.lanes(found) == [1, 2, 3]


def test_two_versions_say_which_steps_changed() -> None:
    before = make_spec("robo two", steps=STEPS)
    after = make_spec("robo two", steps=(*STEPS[:1], *STEPS[2:]), version="2")
    assert [(each.step, each.kind) for each in versions.steps(before, after)] == [("propose", "removed")]


def test_the_figures_tell_of_the_teams_that_are_seen_alone() -> None:
    team, other = make_team(), make_team()
    stored = make_plan()
    for each in (team, team, other):
        make_run(team=each, plan=stored)
    Run.objects.filter(plan=stored, team=other).update(status="failed")
    Run.objects.filter(pk=Run.objects.filter(plan=stored, team=team).latest("pk").pk).update(status="completed")
    found = figures.of_plans([stored.pk], [team.pk])
    assert (found.success, str(found.statuses["queued"]), str(found.statuses["failed"])) == (100, "1", "0")


def test_the_figures_say_how_long_gates_waited() -> None:
    gate = held(make_team())
    decide(gate, ann(gate.team))
    found = figures.of_plans([gate.run.plan_id], [gate.team_id])
    assert found.decided == 1
    assert found.half is not None
    assert figures.quantile([1.0, 2.0, 3.0, 10.0], 0.5) == figures.quantile([3.0], 0.9)


def test_a_run_is_started_once_by_a_form_that_is_sent_twice() -> None:
    team = make_team()
    person = bob(team)
    page = signed_in(person).get("/agents/refunds/").content.decode()
    assert 'id="start-run"' in page
    [key] = re.findall(r'name="key" value="([^"]+)"', page)
    form = {"key": key, "team": str(team.pk), "json": '{"mail": {"name": "a.eml", "raw": "From: a@example.org"}}'}
    answers = [signed_in(person).post("/agents/refunds/runs/", form) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [302, 302], answers[0].content.decode()[:3000]
    assert answers[0]["Location"] == answers[1]["Location"]
    run = Run.objects.get(team=team)
    assert (run.started_by, run.plan.agent) == (person, "refunds")


def test_faults_come_back_in_their_places_and_nothing_is_started() -> None:
    team = make_team()
    client = signed_in(bob(team))
    for typed in ({"json": "{"}, {"json": '{"strange": 1}'}, {"team": ""}, {"json": "[1, 1]"}):
        answer = client.post("/agents/refunds/runs/", {"key": "k", "team": str(team.pk), **typed})
        assert answer.status_code == 422, typed
        assert "error" in answer.content.decode()
    assert not Run.objects.filter(team=team).exists()


def test_nobody_starts_a_run_for_a_team_that_is_not_theirs() -> None:
    team, other = make_team(may=ALLOWED), make_team(may=ALLOWED)
    answer = signed_in(bob(team)).post("/agents/refunds/runs/", {"key": "k", "team": str(other.pk), "json": "{}"})
    assert answer.status_code == 422
    assert not Run.objects.filter(team=other).exists()
