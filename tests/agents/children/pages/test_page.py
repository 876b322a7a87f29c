"""What the pages and the API show of a family: the children with their gates, and where a run is among them."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from agents import tokens
from agents.models import TokenScope
from agents.moves import rewind
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.agents.pages.moves.sent_orders import member
from tests.factories import ann, eve, make_policy, make_team, mira
from tests.factories.driven_runs import advance, make_run, open_gate, trail
from tests.harness.signed_in_clients import signed_in

from ..families import child, children, make_parent, to_rest


def text_of(html: str) -> str:
    """What a reader reads, without the markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", html))


def page(run: Run) -> str:
    """The page of the run, as a member of its team gets it."""
    response = member(run).get(f"/runs/{run.pk}/")
    assert response.status_code == 200
    return response.content.decode()


def part(html: str, id: str) -> str:
    """The text of the element with this id, up to the end of its section or nav."""
    found = re.search(rf'<(section|nav)[^>]* id="{id}".*?</\1>', html, re.DOTALL)
    assert found, id
    return text_of(found[0])


def test_the_parent_shows_its_children_their_gates_and_counts() -> None:
    run = advance(make_parent(*"abcd", modes={"a": "ask"}))
    asking = advance(child(run, "a"))
    advance(child(run, "b"))
    html = page(run)
    said = part(html, "children")
    assert "1 queued, 2 waiting, 1 completed" in said or "2 queued, 1 waiting, 1 completed" in said
    assert f"/gates/{open_gate(asking).pk}/" in html
    assert "Good?" in said
    assert f"/runs/{child(run, 'd').pk}/" in html


def test_a_run_without_children_shows_none() -> None:
    html = page(make_run("child_worker"))
    assert 'id="children"' in html
    assert "Children" not in part(html, "children")
    assert part(html, "position").split() == ["child_worker", "Work"]


def test_a_child_names_the_runs_above_it_and_which_child_it_is() -> None:
    run = advance(make_parent(*"abc"))
    html = page(child(run, "b"))
    assert part(html, "position").split() == [
        "parent,",
        "Fan",
        "out",
        "child_worker",
        "(child",
        "2",
        "of",
        "3)",
        "Work",
    ]
    assert f'href="/runs/{run.pk}/"' in html


def test_the_position_goes_through_all_generations() -> None:
    run = advance(make_run("nested", depth=2))
    [below] = children(run)
    [lowest] = children(advance(below))
    said = part(page(lowest), "position")
    assert said.split() == [
        "nested,",
        "Go",
        "down",
        "nested,",
        "Go",
        "down",
        "nested",
        "(child",
        "1",
        "of",
        "1)",
        "Go",
        "down",
    ]


def test_the_position_counts_the_turns_of_a_loop() -> None:
    run = advance(make_run("looper"))
    assert part(page(run), "position").split() == ["looper", "Go", "round,", "turn", "3"]


def test_what_was_left_behind_says_so(tmp_path: Path) -> None:
    run = to_rest(make_run("payroll", ledger=str(tmp_path / "ledger"), names=["a"], modes={"look": ""}))
    patch: list[Any] = [{"op": "replace", "path": "/names", "value": []}]
    rewind.edit(run, at=trail(run).index(("step", "pay_all")), patch=patch, by=ann(run.team))
    assert "abandoned: taken over if it is started again" in part(page(run), "children")
    rewind.settle_now(to_rest(run), by=ann(run.team))
    to_rest(run)
    assert "abandoned; undone" in part(page(run), "children")


def test_the_page_makes_no_query_more_for_its_children() -> None:
    def queries(run: Run) -> int:
        client = member(run)
        client.get(f"/runs/{run.pk}/")
        with CaptureQueriesContext(
            connection,
        ) as found:
            client.get(f"/runs/{run.pk}/")
        return len(found)

    few, many = advance(make_parent("a")), advance(make_parent(*"abcdefgh"))
    assert queries(few) == queries(many) <= 12


def test_the_api_gives_the_parent_the_counts_and_the_children() -> None:
    run = advance(make_parent(*"abcd", modes={"a": "ask"}))
    asking = advance(child(run, "a"))
    client = member(run)
    told = client.get(f"/api/runs/{run.pk}").json()
    assert (told["parent"], told["children"]) == (None, {"queued": 3, "waiting": 1})
    assert client.get(f"/api/runs/{asking.pk}").json()["parent"] == run.pk
    answer = client.get(f"/api/runs/{run.pk}/children").json()
    assert [each["title"] for each in answer["items"]] == ["Child d", "Child c", "Child b", "Child a"]
    first = answer["items"][-1]
    assert (first["id"], first["status"], first["gates"]) == (asking.pk, "waiting", [open_gate(asking).pk])
    assert (first["step"], first["stands"], first["held"], first["ordered"]) == ("fan_out", True, False, None)
    page = client.get(f"/api/runs/{run.pk}/children?limit=3").json()
    rest = client.get(f"/api/runs/{run.pk}/children?limit=3&cursor={page['next']}").json()
    assert [len(page["items"]), len(rest["items"]), rest["next"]] == [3, 1, None]


def test_the_api_gives_a_token_for_one_agent_that_agents_children_alone() -> None:
    """It was given title, status, reason and gates of every child, and 404 for the child itself."""
    run = advance(make_run("nested", depth=1))
    other = advance(make_parent("a", team=run.team))

    def told(agent: str, run: Run) -> list[int]:
        owner, day = ann(run.team), timedelta(days=1)
        _, key = tokens.issue(
            owner=owner, name=agent, scopes=[TokenScope.READ], lasts=day, agent=agent, team=run.team, by=SYSTEM
        )
        client, header = Client(), {"Authorization": f"Bearer {key}"}
        items = client.get(f"/api/runs/{run.pk}/children", headers=header).json()["items"]
        assert all(client.get(f"/api/runs/{each['id']}", headers=header).status_code == 200 for each in items)
        return [each["id"] for each in items]

    assert told("nested", run) == [each.pk for each in children(run)]
    assert told("parent", other) == []


def test_the_gate_of_a_child_says_whose_it_is() -> None:
    team, other = make_team(), make_team("Finance")
    make_policy(team, name="default", groups=(other,))
    run = advance(make_run("parent", team=team, names=["a"], modes={"a": "ask"}))
    gate = open_gate(advance(child(run, "a")))
    html = member(run).get(f"/gates/{gate.pk}/").content.decode()
    assert f'started by <a href="/runs/{run.pk}/">R-{run.pk}</a>' in html
    beside = signed_in(mira(other)).get(f"/gates/{gate.pk}/")
    assert beside.status_code == 200
    assert f"R-{run.pk}<" not in beside.content.decode()


@pytest.mark.parametrize("path", ["/runs/{}/", "/api/runs/{}/children"])
def test_an_outsider_sees_none(path: str) -> None:
    run = advance(make_parent("a"))
    assert signed_in(eve()).get(path.format(run.pk)).status_code == 404
