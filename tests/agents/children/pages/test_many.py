"""A parent of many children, and a child that asks at many gates: what asks is shown first, and the rest is counted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pydantic import BaseModel

from agents import Agent, Card, gate, step
from agents.definition import registry
from agents.moves import impact
from agents.pages.run.row import CHILDREN
from approvals.models import Gate
from checkpoints.models import Run
from tests.agents.open_gates.launches import decide
from tests.agents.pages.moves.sent_orders import member
from tests.factories.driven_runs import advance, make_run

from ..families import child, children, make_parent, to_rest
from .test_page import page, part


class Asker(Agent):
    """Asks six questions side by side."""

    name = "many_asker"

    class State(BaseModel):
        word: str

    @gate(waits=False)
    def first(self, word: str) -> Card:
        return Card(title="First?")

    @gate(waits=False)
    def second(self, word: str) -> Card:
        return Card(title="Second?")

    @gate(waits=False)
    def third(self, word: str) -> Card:
        return Card(title="Third?")

    @gate(waits=False)
    def fourth(self, word: str) -> Card:
        return Card(title="Fourth?")

    @gate(waits=False)
    def fifth(self, word: str) -> Card:
        return Card(title="Fifth?")

    @gate(waits=False)
    def sixth(self, word: str) -> Card:
        return Card(title="Sixth?")


class Starter(Agent):
    """Starts one that asks."""

    name = "starter"

    class State(BaseModel):
        word: str

    @step
    def start(self, word: str) -> dict[str, Any]:
        self.gather(self.spawn("many_asker", {"word": word}))
        return {"word": word}


@pytest.fixture
def asking() -> Iterator[Run]:
    """A run whose child asks at six gates."""
    with registry.knowing(registry.of_classes([Starter, Asker])):
        yield to_rest(make_run("starter", word="a"))


@pytest.fixture(scope="module")
def many() -> list[str]:
    """The names of more children than a page shows."""
    return [f"n{number}" for number in range(CHILDREN + 3)]


def test_each_open_gate_of_a_child_is_shown(asking: Run) -> None:
    [each] = children(asking)
    gates = list(Gate.objects.open().filter(run=each).order_by("pk"))
    html, said = page(asking), part(page(asking), "children")
    assert [word in said for word in ("First?", "Fifth?", "Sixth?", "and 1 more")] == [True, True, False, True]
    assert [f"/gates/{gate.pk}/" in html for gate in gates] == [True] * 5 + [False]

    for name in ("first", "second"):
        decide(each, name)
    said = part(page(asking), "children")
    assert [word in said for word in ("First?", "Third?", "Sixth?", "more")] == [False, True, True, False]


def test_those_that_ask_are_shown_first_and_the_rest_is_counted(many: list[str]) -> None:
    run = advance(make_parent(*many, modes={many[0]: "ask", many[2]: "ask"}))
    first, third = (advance(child(run, many[number])) for number in (0, 2))
    html = page(run)
    newest = [each.pk for each in children(run)[::-1]]
    asked = [third.pk, first.pk]
    shown = [int(number) for number in re.findall(r'<th scope="row"><a href="/runs/(\d+)/">', html)]
    assert shown == (asked + newest)[:CHILDREN]
    assert part(html, "children").endswith("and 3 more ")
    client = member(run)
    client.get(f"/runs/{run.pk}/")
    with CaptureQueriesContext(connection) as sent:
        client.get(f"/runs/{run.pk}/")
    assert len(sent) <= 12

    few = page(advance(make_parent("a", "b")))
    assert "more" not in part(few, "children")


def test_a_move_says_what_becomes_of_each_of_them(many: list[str]) -> None:
    run = advance(make_parent(*many))
    assert [str(each.fate) for each in impact.of_rewind(run, 1).children] == ["may_undone"] * len(many)
    preview = member(run).post(f"/runs/{run.pk}/impacts/", {"kind": "rewind", "at": 1}).content.decode()
    assert f"{len(many) - 6} more" in preview
    assert f"{len(many)} runs that it started are cancelled too." in " ".join(page(run).split())
