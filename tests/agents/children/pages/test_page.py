"""What the pages and the API show of a family: the children with their gates, and where a run is among them.

What asks is shown first, the rest is counted, and no secret is shown.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pydantic import BaseModel, SecretStr

from agents import Agent, step, tokens
from agents.models import ChildLink, TokenScope
from agents.moves import rewind
from agents.moves.fork import fork
from agents.pages.run.row import CHILDREN
from agents.testing import Trial
from checkpoints.actors import SYSTEM
from checkpoints.models import Run
from tests.agents.children.families import child, children, make_parent, to_rest
from tests.agents.pages.moves.sent_orders import member
from tests.factories import ann, make_policy, make_team, mira
from tests.factories.driven_runs import advance, make_run, open_gate, trail
from tests.harness.signed_in_clients import signed_in


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


def test_the_parent_shows_its_children_their_gates_and_counts_and_a_child_which_one_it_is() -> None:
    run = advance(make_parent(*"abcd", modes={"a": "ask"}))
    asking = advance(child(run, "a"))
    advance(child(run, "b"))
    html = page(run)
    said = part(html, "children")
    assert "1 queued, 2 waiting, 1 completed" in said or "2 queued, 1 waiting, 1 completed" in said
    assert f"/gates/{open_gate(asking).pk}/" in html
    assert "Good?" in said
    assert f"/runs/{child(run, 'd').pk}/" in html
    html = page(child(run, "c"))
    assert " ".join(part(html, "position").split()) == "parent, Fan out child_worker (child 3 of 4) Work"
    assert f'href="/runs/{run.pk}/"' in html
    assert "Children" not in part(html, "children")


def test_the_position_goes_through_all_generations_and_counts_the_turns_of_a_loop() -> None:
    run = advance(make_run("nested", depth=2))
    [below] = children(run)
    [lowest] = children(advance(below))
    said = " ".join(part(page(lowest), "position").split())
    assert said == "nested, Go down nested, Go down nested (child 1 of 1) Go down"
    assert part(page(advance(make_run("looper"))), "position").split() == ["looper", "Go", "round,", "turn", "3"]


def test_what_was_left_behind_says_so(ledger: Path) -> None:
    run = to_rest(make_run("payroll", ledger=str(ledger), names=["a"], modes={"look": ""}))
    patch: list[Any] = [{"op": "replace", "path": "/names", "value": []}]
    rewind.edit(run, at=trail(run).index(("step", "pay_all")), patch=patch, by=ann(run.team))
    assert "abandoned: taken over if it is started again" in part(page(run), "children")
    fork(run, at=1, by=ann(run.team), patch=patch)
    assert "else undone" in part(page(run), "children")
    rewind.settle_now(to_rest(run), by=ann(run.team))
    to_rest(run)
    assert "abandoned; undone" in part(page(run), "children")


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


def shown(ledger: Path, **modes: str) -> tuple[Run, str]:
    """A child that has asked and goes on, and what the page of its parent shows of it."""
    run = to_rest(make_run("chief", ledger=str(ledger), modes=modes))
    return child(run, "a"), part(page(run), "children")


def test_a_child_beside_an_open_gate_is_held_by_it_only_where_it_waits_for_that_gate(ledger: Path) -> None:
    """It was shown as held at the gate, and nothing said that it waited for a signal, or for its own children."""
    made, said = shown(ledger, wait="")
    assert open_gate(made).step == "agree"
    assert "Held at a gate" not in said
    assert "Waiting Agreed? Waits for the signal go" in said
    _, said = shown(ledger, x="sleep")
    assert "Waiting Agreed? Waits for 1 run that it started" in said
    _, said = shown(ledger)
    assert "Held at a gate Agreed?" in said
    assert "waits for the decision" not in said


@pytest.mark.parametrize("many", [5, pytest.param(CHILDREN + 3, marks=pytest.mark.long)])
def test_those_that_ask_are_shown_first_and_what_there_is_no_room_for_is_counted(many: int) -> None:
    names = [f"n{number}" for number in range(many)]
    run = advance(make_parent(*names, modes={names[0]: "ask", names[2]: "ask"}))
    first, third = (advance(child(run, names[number])) for number in (0, 2))
    html = page(run)
    newest = [each.pk for each in children(run)[::-1]]
    asked = [third.pk, first.pk]
    shown = [int(number) for number in re.findall(r'<th scope="row"><a href="/runs/(\d+)/">', html)]
    assert shown == list(dict.fromkeys(asked + newest))[:CHILDREN]
    assert part(html, "children").endswith("and 3 more ") == (many > CHILDREN)
    client = member(run)
    client.get(f"/runs/{run.pk}/")
    with CaptureQueriesContext(connection) as sent:
        client.get(f"/runs/{run.pk}/")
    assert len(sent) <= 12


class Vault(Agent):
    """A child that needs its secret."""

    name = "child_vault"
    team = "Support"

    class State(BaseModel):
        pin: SecretStr
        opened: bool = False

    @step
    def open(self, pin: SecretStr) -> dict[str, Any]:
        return {"opened": pin.get_secret_value() in ("4711", "0815")}


class Keys(Agent):
    """Starts two children whose inputs differ in the secret alone."""

    name = "keys"
    team = "Support"

    class State(BaseModel):
        pin: SecretStr
        opened: list[bool] = []

    @step
    def open_all(self, pin: SecretStr) -> dict[str, Any]:
        pins = [pin, SecretStr("0815")]
        children = [
            self.spawn("child_vault", Vault.State(pin=each), name=f"Vault {each.get_secret_value()}") for each in pins
        ]
        return {"opened": [bool(each and each.state["opened"]) for each in self.gather(*children)]}


def test_a_child_that_is_started_with_a_model_gets_its_secrets_and_its_title_has_none() -> None:
    """They were given as stars, and two inputs that differ in a secret alone were one."""
    run = Trial(Keys, pin="4711", starts=[Vault])
    assert (run.status, run.state["opened"]) == ("completed", [True, True])
    links = ChildLink.objects.filter(parent=run.row)
    assert len({bytes(each.digest) for each in links}) == 2
    assert "4711" not in run.children[0].title
