"""The list of runs."""

from __future__ import annotations

import pytest

from agents.views import listing
from tests.factories import bob, make_team
from tests.run_pages.test_run_page import signed_in, text_of
from tests.run_pages.walks import begin, held


def test_the_runs_of_my_teams_come_newest_first_with_what_they_wait_for() -> None:
    team = make_team()
    gate = held(team, title="Refund for Marit")
    newer = begin(team, title="Refund for Nils").run
    begin(make_team(), title="Not of my team")
    html = signed_in(bob(team)).get("/runs/").content.decode()
    text = text_of(html)
    assert html.index(f'id="run-{newer.pk}"') < html.index(f'id="run-{gate.run_id}"')
    assert "Held at review Refund for Marit" in text
    assert "Running find_order" in text
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
    assert "No run has that status" in text_of(client.get("/runs/?status=failed").content.decode())


def test_pages_go_on_below_the_last_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "PAGE", 2)
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


def test_an_empty_list_says_how_a_run_begins() -> None:
    text = text_of(signed_in(bob(make_team())).get("/runs/").content.decode())
    assert "No runs yet" in text
    assert "manage.py run_agent" in text


def test_the_list_asked_for_by_the_page_is_a_fragment() -> None:
    client = signed_in(bob(make_team()))
    assert "<html" not in client.get("/runs/", headers={"HX-Request": "true"}).content.decode()


def test_the_list_refuses_a_post() -> None:
    assert signed_in(bob(make_team())).post("/runs/").status_code == 405
