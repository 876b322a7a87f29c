"""The pages of agents: what each does, how it went, and a form that starts a run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db.models.functions import Now
from django.template import Context, Template
from playwright.sync_api import Page, expect

from agents.definition import registry
from agents.models import Worker
from agents.pages import agent_plan as plan
from agents.pages import agents as pages
from agents.runs import stats
from agents.runs.stats import AgentFigures
from approvals.templatetags import holdpoint
from checkpoints import store
from checkpoints.models import Plan, Run
from checkpoints.values import artifacts
from tests.agents.pages.moves.sent_orders import said
from tests.agents.pages.stored_histories import held
from tests.factories import ann, bob, decide, eve, make_plan, make_run, make_spec, make_team, make_user
from tests.factories.runs import STEPS
from tests.harness.browser_checks import check_each_look, watched
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

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
                 "cannot be undone", "calls an external system"):  # fmt: skip
        assert word in text, word
    assert page.split("<main")[1].count('class="bars"') == 2  # the hold line, once


def test_ways_of_one_kind_from_or_to_one_row_share_a_lane_and_others_keep_their_own() -> None:
    found = plan.ways(make_spec(steps=STEPS))
    assert [(way.kind, way.start, way.end) for way in found] == [("allows", 2, 3), ("allows", 2, 4), ("back", 2, 1)]
    shared = plan.trunks(found)
    assert [(each.kind, each.stops) for each in shared] == [("allows", (2, 3, 4)), ("back", (1, 2))]
    assert plan.lanes(shared) == [1, 2]
    loop = [
        plan.PlanEdge("jumps", *way) for way in ((0, 2), (1, 2), (2, 2), (5, 2), (5, 6), (5, 7), (6, 5), (7, 5), (3, 4))
    ]
    assert [each.stops for each in plan.trunks(loop)] == [(0, 1, 2, 5), (5, 6, 7), (5, 6, 7), (3, 4)]
    assert plan.lanes(plan.trunks(loop)) == [1, 2, 3, 2]


def test_the_form_offers_the_team_that_the_agents_runs_belong_to(monkeypatch: pytest.MonkeyPatch) -> None:
    first, own = make_team("Accounting", may=ALLOWED), make_team("Support", may=ALLOWED)
    monkeypatch.setattr(registry.agent_named("refunds").agent, "team", own.name)
    client = signed_in(make_user("Ann Okafor", first, own))
    chosen = re.compile(r'<option value="(\d+)" selected>')
    assert chosen.findall(client.get("/agents/refunds/").content.decode()) == [str(own.pk)]
    again = client.post("/agents/refunds/runs/", {"team": first.pk, "json": "{}"})
    assert chosen.findall(again.content.decode()) == [str(first.pk)]


def test_two_versions_say_which_steps_changed() -> None:
    before = make_spec("robo two", steps=STEPS)
    after = make_spec("robo two", steps=(*STEPS[:1], *STEPS[2:]), version="2")
    assert [(each.step, each.kind) for each in pages.changed_steps(before, after)] == [("propose", "removed")]


def figures_of(plan: Plan, team: Group) -> AgentFigures:
    return stats.of_agents({"one": [plan.pk]}, [team.pk])["one"]


def test_the_figures_tell_of_the_teams_that_are_seen_alone() -> None:
    team, other = make_team(), make_team()
    stored = make_plan()
    for each in (team, team, other):
        make_run(team=each, plan=stored)
    Run.objects.filter(plan=stored, team=other).update(status="failed", finished_at=Now())
    newest = Run.objects.filter(plan=stored, team=team).latest("pk").pk
    Run.objects.filter(pk=newest).update(status="completed", finished_at=Now())
    found = figures_of(stored, team)
    assert (found.success, found.statuses["queued"], found.statuses["failed"]) == (100, 1, 0)


def test_what_ended_long_ago_is_not_told_and_what_lives_is() -> None:
    team, stored = make_team(), make_plan()
    for status, days in (("completed", 40), ("failed", 1), ("waiting", 0)):
        run = make_run(team=team, plan=stored)
        ended = Now() - timedelta(days=days) if days else None
        Run.objects.filter(pk=run.pk).update(status=status, created_at=Now() - timedelta(days=60), finished_at=ended)
    found = figures_of(stored, team)
    assert {each: number for each, number in found.statuses.items() if number} == {"failed": 1, "waiting": 1}


def test_the_figures_say_how_long_gates_waited() -> None:
    gate = held(make_team())
    decide(gate, ann(gate.team))
    found = figures_of(gate.run.plan, gate.team)
    assert found.decided == 1
    assert found.half is not None
    assert list(found.within.values()) == [1, 0, 0, 0, 0]
    page = said(signed_in(bob(gate.team)).get("/agents/").content.decode())
    assert re.search(r"Waiting at gates Median \S+ \w+ 90 % within \S+ \w+; 1 decided, 0 expired", page)


def test_all_agents_are_figured_in_one_statement() -> None:
    team = make_team()
    for _ in range(3):
        make_run(team=team, plan=make_plan())
    client = signed_in(bob(team))
    with sent() as statements:
        page = client.get("/agents/").content.decode()
    assert page.count('class="agent-row"') >= 3
    assert sum("%(window)s" in each for each in statements) == 1, statements
    assert len(statements) <= 12, statements


def test_the_figures_are_drawn_with_their_words_beside_them() -> None:
    team, stored = make_team(), make_plan()
    page = said(signed_in(bob(team)).get("/agents/refunds/").content.decode())
    assert "No runs in the last 30 days" in page
    for status in ("completed", "completed", "completed", "failed"):
        Run.objects.filter(pk=make_run(team=team, plan=stored).pk).update(status=status, finished_at=Now())
    found = figures_of(stored, team)
    assert [(part.status, part.start, part.width) for part in pages.draw_ends(found)] == [
        ("completed", "0.00%", "75.00%"), ("failed", "75.00%", "25.00%"),
    ]  # fmt: skip
    assert pages.draw_waits(found) == []
    page = signed_in(bob(team)).get(f"/agents/{stored.agent}/").content.decode()
    assert 'width="75.00%"' in page
    assert "75 %" in said(page)
    assert "3 completed" in said(page)
    assert [bar.width for bar in pages.bars(["a", "b"], [0, 4])] == ["0.00%", "100.00%"]


def test_whether_workers_serve_an_agent_is_what_they_say() -> None:
    team, stored = make_team(), make_plan()
    run, client = make_run(team=team, plan=stored), signed_in(bob(team))

    def words(**columns: Any) -> str:
        Run.objects.filter(pk=run.pk).update(**columns)
        return said(client.get(f"/agents/{stored.agent}/").content.decode())

    late = f"A run of version {stored.version} has waited 5 min to run"
    assert "No worker serves it." in words()
    assert late in words(created_at=Now() - timedelta(minutes=5))
    assert late not in words(wake_at=Now() + timedelta(minutes=5))
    assert late in words(status="running", lease_until=Now() - timedelta(minutes=5))
    Worker.objects.beat("box:81", [stored.pk])
    assert f"Workers serve version {stored.version}." in words()
    assert "its workers are busy, or Redis does not answer" in words()
    Worker.objects.filter(pk="box:81").update(heard_at=Now() - timedelta(minutes=5))
    assert "No worker has served it since" in words()


@pytest.mark.examples
def test_the_figures_are_accessible_and_never_wider_than_the_screen(new_page: Callable[..., Page]) -> None:
    gate = held(make_team())
    decide(gate, ann(gate.team))
    for status in ("completed", "failed", "cancelled"):
        ended = make_run(team=gate.team, plan=gate.run.plan)
        Run.objects.filter(pk=ended.pk).update(status=status, finished_at=Now())
    Run.objects.filter(pk=gate.run_id).update(wake_at=Now() - timedelta(minutes=5))
    page = new_page(bob(gate.team))
    complaints = watched(page)
    for address in ("/agents/", f"/agents/{gate.run.plan.agent}/"):
        assert check_each_look(page, address, complaints) == []
        expect(page.locator(".meter rect[data-status]")).to_have_count(3)


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


def test_a_text_that_may_be_long_is_written_in_several_lines_and_one_team_is_not_chosen() -> None:
    """A raw mail had a field of one line, which a browser strips of its line breaks."""
    team = make_team()
    person = bob(team)
    page = signed_in(person).get("/agents/refunds/").content.decode()
    assert re.search(r'<textarea class="input" id="[^"]+" name="input/mail/raw"', page)
    assert re.search(r'<input class="input" id="[^"]+" name="input/mail/name"', page)
    assert f'<input type="hidden" name="team" value="{team.pk}">' in page
    assert '<select class="input" id="team"' not in page
    raw = "From: a@example.org\r\nSubject: Order 1\r\n\r\nIt is broken."
    form = {"key": "k1", "team": str(team.pk), "input/mail/name": "a.eml", "input/mail/raw": raw}
    assert signed_in(person).post("/agents/refunds/runs/", form).status_code == 302
    assert store.load(Run.objects.get(team=team)).state["mail"]["raw"] == raw.replace("\r\n", "\n")
    person.groups.add(make_team())
    assert '<select class="input" id="team"' in signed_in(person).get("/agents/refunds/").content.decode()


@pytest.mark.parametrize(
    ("doc", "shown"),
    [
        ("Read `mail`, then ``order``.", "Read mail, then order."), ("One ` alone", "One ` alone"),
        ("`<b>`", "&lt;b&gt;"), ("no mark", "no mark"), ("``a` b", "``a` b"),
    ],
)  # fmt: skip
def test_backticks_of_what_an_author_wrote_are_not_shown(doc: str, shown: str) -> None:
    drawn = Template("{% load holdpoint %}{{ doc|docstring }}").render(Context({"doc": doc}))
    assert drawn == f"<bdi>{shown}</bdi>"


def test_backticks_that_mark_nothing_are_read_once() -> None:
    """Each of them was tried as a beginning, over and over: a text of a hundred thousand took minutes."""
    assert holdpoint.CODE.sub("", "`" * 100_000) == "`" * 100_000


def test_faults_come_back_in_their_places_and_nothing_is_started() -> None:
    team = make_team()
    client = signed_in(bob(team))
    for typed in ({"json": "{"}, {"json": '{"strange": 1}'}, {"team": ""}, {"json": "[1, 1]"}):
        answer = client.post("/agents/refunds/runs/", {"key": "k", "team": str(team.pk), **typed})
        assert "No run was started." in answer.content.decode()
        assert answer.status_code == 422, typed
        assert "error" in answer.content.decode()
    assert not Run.objects.filter(team=team).exists()


@pytest.mark.parametrize(("chosen", "given"), [("", 4), ("5", 5), ("0", 0), ("9", 9)])
def test_a_run_has_the_priority_that_was_chosen_or_the_agents_and_its_page_says_an_unusual_one(
    chosen: str, given: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry.agent_named("refunds").agent, "priority", 4)
    team = make_team(may=ALLOWED)
    client = signed_in(bob(team))
    assert "4, the agent's own" in said(client.get("/agents/refunds/").content.decode())
    input = {"mail": {"name": "a.eml", "raw": "From: a@example.org"}}
    form = {"team": str(team.pk), "json": json.dumps(input), "priority": chosen}
    assert client.post("/agents/refunds/runs/", form).status_code == 302
    run = Run.objects.get(team=team)
    assert run.priority == given
    assert (f", priority {given}" in said(client.get(f"/runs/{run.pk}/").content.decode())) == (given != 5)


@pytest.mark.parametrize("typed", ["10", "-1", "05", "urgent", "٣"])
def test_a_priority_that_is_none_comes_back_in_its_place_and_nothing_is_started(typed: str) -> None:
    team = make_team(may=ALLOWED)
    input = {"mail": {"name": "a.eml", "raw": "From: a@example.org"}}
    form = {"team": str(team.pk), "json": json.dumps(input), "priority": typed}
    answer = signed_in(bob(team)).post("/agents/refunds/runs/", form)
    assert answer.status_code == 422
    page = answer.content.decode()
    assert "Priority takes a number from 0 to 9" in said(page)
    assert re.search(r'<select [^>]*id="priority"[^>]*aria-invalid="true"', page)
    assert not Run.objects.filter(team=team).exists()


def test_nobody_starts_a_run_for_a_team_that_is_not_theirs() -> None:
    team, other = make_team(may=ALLOWED), make_team(may=ALLOWED)
    answer = signed_in(bob(team)).post("/agents/refunds/runs/", {"key": "k", "team": str(other.pk), "json": "{}"})
    assert answer.status_code == 422
    assert not Run.objects.filter(team=other).exists()


def test_an_address_and_a_key_that_no_page_has_are_no_fault_of_the_server() -> None:
    """U+0000 in them was asked of PostgreSQL, which takes none: the answer was 500."""
    client = signed_in(bob(make_team()))
    assert client.get("/agents/%00/").status_code == 404
    assert client.post("/agents/%00/runs/", {"key": "a"}).status_code == 404
    answer = client.post("/agents/refunds/runs/", {"key": "a\0", "json": "{}", "team": "0"})
    assert answer.status_code == 422


def test_a_run_begins_with_no_file_of_another_team() -> None:
    """Whoever knew a file's digest began a run with it, and its gate handed the file out."""
    team = make_team(may=ALLOWED)
    decision = {"gate": "1", "kind": "edited", "by": "Ann", "changes": [{"value": artifacts.keep(b"theirs")}]}
    input = {"mail": {"name": "a.eml", "raw": "From: a@example.org"}, "decision": decision}
    form = {"team": str(team.pk), "json": json.dumps(input)}
    answer = signed_in(bob(team)).post("/agents/refunds/runs/", form)
    assert answer.status_code == 422
    assert "is a file that this run's team does not have" in said(answer.content.decode())
