"""The pages of agents: what each does, how it went, and a form that starts a run."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db.models.functions import Now

from agents.definition import registry
from agents.models import Worker
from agents.runs import activity
from agents.runs.activity import AgentFigures
from approvals.templatetags import holdpoint
from checkpoints import store
from checkpoints.models import Plan, Run
from checkpoints.values import artifacts
from tests.agents.pages.moves.sent_orders import said
from tests.agents.pages.stored_histories import held
from tests.factories import ann, bob, decide, eve, make_plan, make_run, make_team, make_user
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in

ALLOWED = ("checkpoints.view_run", "checkpoints.start_run")


def test_a_member_sees_the_agents_that_their_teams_run_or_may_start() -> None:
    gate = held(team := make_team())
    page = signed_in(bob(team)).get("/agents/").content.decode()
    assert gate.run.plan.agent in page
    assert "refunds" in page
    reader = signed_in(make_user("Rita Reader", make_team(may=("checkpoints.view_run",))))
    assert "refunds" not in reader.get("/agents/").content.decode().split("<main")[1]
    assert signed_in(eve()).get("/agents/refunds/").status_code == 404


def test_the_page_of_an_agent_draws_its_steps_and_says_where_they_lead() -> None:
    gate = held(team := make_team())
    client = signed_in(bob(team))
    with sent() as statements:
        page = client.get(f"/agents/{gate.run.plan.agent}/").content.decode()
    assert len(statements) <= 12, statements
    text = said(page)
    for word in ("allows pay, reply", "a rejection goes back to propose", "undone by cancel_payment",
                 "cannot be undone", "calls an external system"):  # fmt: skip
        assert word in text, word
    assert page.split("<main")[1].count('class="bars"') == 2  # the hold line, once


def figures_of(plan: Plan, team: Group) -> AgentFigures:
    return activity.of_agents({"one": [plan.pk]}, [team.pk])["one"]


def test_the_figures_tell_of_the_teams_that_are_seen_alone_of_what_ended_lately_and_of_what_lives() -> None:
    team, other = make_team(), make_team()
    stored = make_plan()
    for status, days, of in (
        ("completed", 40, team), ("completed", 1, team), ("waiting", 0, team), ("failed", 1, other),
    ):  # fmt: skip
        run = make_run(team=of, plan=stored)
        ended = Now() - timedelta(days=days) if days else None
        Run.objects.filter(pk=run.pk).update(status=status, created_at=Now() - timedelta(days=60), finished_at=ended)
    found = figures_of(stored, team)
    assert found.success == 100
    assert {each: number for each, number in found.statuses.items() if number} == {"completed": 1, "waiting": 1}
    make_run(team=team, plan=make_plan())
    with sent() as statements:
        page = signed_in(bob(team)).get("/agents/").content.decode()
    assert page.count('class="agent-row"') >= 2
    assert sum("%(window)s" in each for each in statements) == 1, statements
    assert len(statements) <= 14, statements


def test_the_figures_say_how_long_gates_waited() -> None:
    gate = held(make_team())
    decide(gate, ann(gate.team))
    found = figures_of(gate.run.plan, gate.team)
    assert found.decided == 1
    assert found.half is not None
    assert list(found.within.values()) == [1, 0, 0, 0, 0]
    page = said(signed_in(bob(gate.team)).get("/agents/").content.decode())
    assert re.search(r"Waiting at gates Median \S+ \w+ 90 % within \S+ \w+; 1 decided, 0 expired", page)


def test_the_figures_are_drawn_with_their_words_beside_them() -> None:
    team, stored = make_team(), make_plan()
    page = said(signed_in(bob(team)).get("/agents/refunds/").content.decode())
    assert "No runs in the last 30 days" in page
    for status in ("completed", "completed", "completed", "failed"):
        Run.objects.filter(pk=make_run(team=team, plan=stored).pk).update(status=status, finished_at=Now())
    page = signed_in(bob(team)).get(f"/agents/{stored.agent}/").content.decode()
    assert 'width="75.00%"' in page
    assert "75 %" in said(page)
    assert "3 completed" in said(page)


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


def test_a_run_is_started_once_by_a_form_that_is_sent_twice_and_keeps_the_lines_of_a_long_text() -> None:
    """A raw mail had a field of one line, which a browser strips of its line breaks."""
    person = bob(team := make_team())
    page = signed_in(person).get("/agents/refunds/").content.decode()
    assert 'id="start-run"' in page
    assert re.search(r'<textarea class="input" id="[^"]+" name="input/mail/raw"', page)
    assert re.search(r'<input class="input" id="[^"]+" name="input/mail/name"', page)
    assert f'<input type="hidden" name="team" value="{team.pk}">' in page
    assert '<select class="input" id="team"' not in page
    [key] = re.findall(r'name="key" value="([^"]+)"', page)
    raw = "From: a@example.org\r\nSubject: Order 1\r\n\r\nIt is broken."
    form = {"key": key, "team": str(team.pk), "input/mail/name": "a.eml", "input/mail/raw": raw}
    answers = [signed_in(person).post("/agents/refunds/runs/", form) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [302, 302], answers[0].content.decode()[:3000]
    assert answers[0]["Location"] == answers[1]["Location"]
    run = Run.objects.get(team=team)
    assert (run.started_by, run.plan.agent) == (person, "refunds")
    assert store.load(run).state["mail"]["raw"] == raw.replace("\r\n", "\n")
    person.groups.add(make_team())
    assert '<select class="input" id="team"' in signed_in(person).get("/agents/refunds/").content.decode()


def test_backticks_that_mark_nothing_are_read_once() -> None:
    """Each of them was tried as a beginning, over and over: a text of a hundred thousand took minutes."""
    assert holdpoint.CODE.sub("", "`" * 100_000) == "`" * 100_000


def test_faults_come_back_in_their_places_and_nothing_is_started() -> None:
    client = signed_in(bob(team := make_team()))
    other = make_team(may=ALLOWED).pk
    for typed in (
        {"json": "{"}, {"json": '{"strange": 1}'}, {"team": ""}, {"json": "[1, 1]"}, {"team": other}, {"key": "a\0"},
        {"priority": "10"}, {"priority": "05"}, {"priority": "٣"},
    ):  # fmt: skip
        answer = client.post("/agents/refunds/runs/", {"key": "k", "team": str(team.pk), **typed})
        assert "No run was started." in answer.content.decode()
        assert answer.status_code == 422, typed
        assert "error" in answer.content.decode()
        if "priority" in typed:
            assert "Priority takes a number from 0 to 9" in said(answer.content.decode())
            assert re.search(r'<select [^>]*id="priority"[^>]*aria-invalid="true"', answer.content.decode())
    assert not Run.objects.filter(team__in=(team, other)).exists()
    assert client.get("/agents/%00/").status_code == client.post("/agents/%00/runs/", {"key": "a"}).status_code == 404


@pytest.mark.parametrize(("chosen", "given"), [("", 4), ("5", 5), ("0", 0)])
def test_a_run_has_the_priority_that_was_chosen_or_the_agents_and_its_page_says_an_unusual_one(
    chosen: str, given: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry.agent_named("refunds").agent, "priority", 4)
    client = signed_in(bob(team := make_team(may=ALLOWED)))
    assert "4, the agent's own" in said(client.get("/agents/refunds/").content.decode())
    input = {"mail": {"name": "a.eml", "raw": "From: a@example.org"}}
    form = {"team": str(team.pk), "json": json.dumps(input), "priority": chosen}
    assert client.post("/agents/refunds/runs/", form).status_code == 302
    run = Run.objects.get(team=team)
    assert run.priority == given
    assert (f", priority {given}" in said(client.get(f"/runs/{run.pk}/").content.decode())) == (given != 5)


def test_a_run_begins_with_no_file_of_another_team() -> None:
    """Whoever knew a file's digest began a run with it, and its gate handed the file out."""
    team = make_team(may=ALLOWED)
    decision = {"gate": "1", "kind": "edited", "by": "Ann", "changes": [{"value": artifacts.keep(b"theirs")}]}
    input = {"mail": {"name": "a.eml", "raw": "From: a@example.org"}, "decision": decision}
    form = {"team": str(team.pk), "json": json.dumps(input)}
    answer = signed_in(bob(team)).post("/agents/refunds/runs/", form)
    assert answer.status_code == 422
    assert "is a file that this run's team does not have" in said(answer.content.decode())
