"""The list of runs."""

from __future__ import annotations

import re

import pytest
from django.contrib.auth.models import User

from agents.pages import run_list
from checkpoints import actors, store
from checkpoints.models import Checkpoint
from tests.agents.pages.stored_histories import begin, held
from tests.agents.pages.test_run_page import text_of
from tests.factories import ann, bob, make_plan, make_run, make_spec, make_team, unique
from tests.harness.sent_statements import sent
from tests.harness.signed_in_clients import signed_in


def test_the_runs_of_my_teams_come_newest_first_with_what_they_wait_for() -> None:
    team = make_team()
    gate = held(team, title="Refund for Marit")
    newer = begin(team, title="Refund for Nils").run
    begin(make_team(), title="Not of my team")
    html = signed_in(bob(team)).get("/runs/").content.decode()
    text = text_of(html)
    assert html.index(f'id="run-{newer.pk}"') < html.index(f'id="run-{gate.run_id}"')
    assert "Held at “Review” Refund for Marit" in text
    assert "Running “Find order”" in text
    assert "3 checkpoints" in text
    assert "Not of my team" not in text


def test_a_status_filters_and_an_unknown_one_does_not() -> None:
    team = make_team()
    gate, running = held(team), begin(team).run
    client = signed_in(bob(team))
    waiting = client.get("/runs/?status=waiting").content.decode()
    assert f'id="run-{gate.run_id}"' in waiting
    assert f'id="run-{running.pk}"' not in waiting
    assert f'id="run-{running.pk}"' in client.get("/runs/?status=evil").content.decode()
    assert "No runs match these filters." in text_of(client.get("/runs/?status=failed").content.decode())


def test_pages_go_on_below_the_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_list, "PAGE", 2)
    team = make_team()
    oldest, middle, newest = (begin(team).run.pk for _ in range(3))
    client = signed_in(bob(team))
    first = client.get("/runs/").content.decode()
    assert f'href="/runs/?before={middle}"' in first
    assert f'id="run-{oldest}"' not in first
    second = client.get(f"/runs/?before={middle}").content.decode()
    assert f'id="run-{oldest}"' in second
    assert f'id="run-{newest}"' not in second
    assert "before=" not in second.split('id="run-list"')[1]


def test_only_the_agents_of_my_teams_are_offered_and_of_those_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    mine, other = make_plan(make_spec(unique("mine"))), make_plan(make_spec(unique("other")))
    team = make_team()
    make_run(team=team, plan=mine)
    make_run(team=make_team(), plan=other)
    page = signed_in(bob(team)).get("/runs/").content.decode()
    assert mine.agent in page
    assert other.agent not in page
    newer = make_plan(make_spec(unique("newer")))
    make_run(team=team, plan=newer)
    monkeypatch.setattr(run_list, "PLANS", 1)
    assert list(run_list.versions_by_agent([team.pk])) == [newer.agent]


def test_an_empty_list_says_how_a_run_begins() -> None:
    reader = bob(make_team())
    text = text_of(signed_in(reader).get("/runs/").content.decode())
    assert "No runs yet" in text
    assert "Runs appear here when one of your team" in text
    assert "manage.py run_agent" not in text, "which only an operator can type"
    User.objects.filter(pk=reader.pk).update(is_staff=True)
    assert "manage.py run_agent" in text_of(signed_in(reader).get("/runs/").content.decode())


def test_the_list_asked_for_by_the_page_is_a_fragment() -> None:
    client = signed_in(bob(make_team()))
    assert "<html" not in client.get("/runs/", headers={"HX-Request": "true"}).content.decode()


def test_the_list_refuses_a_post() -> None:
    assert signed_in(bob(make_team())).post("/runs/").status_code == 405


def shown(user: User, query: str) -> set[int]:
    """The runs that a list with this query shows."""
    html = signed_in(user).get(f"/runs/?{query}").content.decode()
    return {int(found) for found in re.findall(r'data-run="(\d+)"', html)}


def test_each_filter_picks_by_itself_and_with_the_others() -> None:
    team, other = make_team("Support"), make_team("Finance")
    person, starter = bob(team, other), ann(team)
    plain = begin(team, title="Refund for Marit").run
    theirs = begin(other, title="Invoice of Nils", started_by=starter).run
    fork = store.fork(Checkpoint.objects.get(run=plain, seq=1).pk, by=actors.SYSTEM, title="Refund, once more")
    everything = {plain.pk, theirs.pk, fork.pk}
    assert shown(person, "") == everything
    assert shown(person, f"team={other.pk}") == {theirs.pk}
    assert shown(person, f"by={starter.username}") == {theirs.pk}
    assert shown(person, "by=nobody-of-that-name") == set()
    assert shown(person, "q=REF mar") == {plain.pk}
    assert shown(person, "q=refund") == {plain.pk, fork.pk}
    assert shown(person, f"forks_of=R-{plain.pk}") == {fork.pk}
    assert shown(person, f"agent={plain.plan.agent}&version=1") == {plain.pk, fork.pk}
    assert shown(person, f"agent={plain.plan.agent}&version=2") == set()
    assert shown(person, "since=2020-01-01&until=2020-01-02") == set()
    assert shown(person, "since=2020-01-01&until=junk") == everything
    assert shown(person, f"q=refund&status=queued&agent={plain.plan.agent}") == {fork.pk}
    assert shown(person, f"upto={plain.pk}") == {plain.pk}


def test_what_waits_for_me_is_a_list_of_its_own() -> None:
    team = make_team()
    person = ann(team)
    mine, own = held(team), held(team, started_by=person)
    begin(team)
    assert shown(person, "status=waiting") == {mine.run_id, own.run_id}
    assert shown(person, "status=mine") == {mine.run_id}


def test_nobody_finds_a_run_of_another_team_whatever_is_asked() -> None:
    theirs = begin(make_team(), title="Not of my team").run
    for query in ("", f"team={theirs.team_id}", "q=team", f"agent={theirs.plan.agent}", f"forks_of={theirs.pk}"):
        assert shown(bob(make_team()), query) == set()


def test_a_page_of_the_list_is_read_in_twelve_statements() -> None:
    team = make_team()
    for _ in range(3):
        held(team)
    client = signed_in(bob(team))
    for query in ("", "?q=refund&status=waiting", "?status=mine"):
        with sent() as statements:
            assert client.get(f"/runs/{query}").status_code == 200
        assert len(statements) <= 12, statements
