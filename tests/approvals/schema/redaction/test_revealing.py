"""Revealing a secret: a permission of its own, the event first, and no trace of the value."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch as broken

import pytest
from django.contrib.auth.models import User

from approvals.models import Gate
from checkpoints.events import event_log as events
from checkpoints.models import Event
from tests.factories import eve
from tests.factories.driven_runs import open_gate
from tests.factories.events import data_of
from tests.harness.signed_in_clients import signed_in

from .vault_agent import KEY, TOKEN
from .vault_runs import make_people, make_run, member


@pytest.fixture
def gate(ledger: str) -> Gate:
    return open_gate(make_run(make_people(), ledger))


def reveal(person: User, gate: Gate, at: str, *, of_run: bool = False, **headers: str) -> Any:
    address = f"/runs/{gate.run_id}/checkpoints/2/reveals/" if of_run else f"/gates/{gate.pk}/reveals/"
    return signed_in(person).post(address, {"at": at}, headers=headers)


def told(gate: Gate) -> list[tuple[str, str, Any]]:
    found = Event.objects.filter(kind="secret.revealed", run_id=gate.run_id).order_by("pk")
    return [(each.subject, each.actor, data_of(each)) for each in found]


def test_it_is_shown_to_whoever_may_and_the_event_tells_where(gate: Gate) -> None:
    ann = member(gate.team, reveals=True)
    answer = reveal(ann, gate, "/accounts/0/key")
    assert (answer.status_code, KEY in answer.content.decode()) == (200, True)
    assert "no-store" in answer["Cache-Control"]
    part = reveal(ann, gate, "/payment/token", of_run=True, **{"HX-Request": "true"})
    assert part.content.decode().count(TOKEN) == 1
    assert "<html" not in part.content.decode()
    assert told(gate) == [
        (gate.subject, f"user:{ann.pk}", {"pointer": "/accounts/0/key", "seq": 2, "proposal": 1}),
        (f"run:{gate.run_id}", f"user:{ann.pk}", {"pointer": "/payment/token", "seq": 2}),
    ]


@pytest.mark.parametrize("of_run", [False, True])
def test_whoever_decides_may_not_see_it_without_the_permission(gate: Gate, of_run: bool) -> None:
    answer = reveal(member(gate.team), gate, "/token", of_run=of_run)
    assert (answer.status_code, TOKEN in answer.content.decode()) == (403, False)
    assert "the permission “see secrets of the team" in answer.content.decode()
    assert reveal(eve(), gate, "/token", of_run=of_run).status_code == 404
    assert signed_in(member(gate.team, reveals=True)).get(f"/gates/{gate.pk}/reveals/").status_code == 405
    assert told(gate) == []


@pytest.mark.parametrize("at", ["", "/note", "/accounts", "/nowhere", "token", "/session", "/token/0"])
@pytest.mark.parametrize("of_run", [False, True])
def test_nothing_but_a_secret_is_revealed(gate: Gate, at: str, of_run: bool) -> None:
    assert reveal(member(gate.team, reveals=True), gate, at, of_run=of_run).status_code == 404
    assert told(gate) == []


def test_without_its_event_it_is_not_shown(gate: Gate) -> None:
    ann = member(gate.team, reveals=True)
    with broken.object(events, "append_events", side_effect=RuntimeError("no event")), pytest.raises(RuntimeError):
        reveal(ann, gate, "/token")
    assert told(gate) == []


def test_the_pages_offer_it_to_whoever_may(gate: Gate) -> None:
    page = f"/gates/{gate.pk}/"
    offered = signed_in(member(gate.team, reveals=True)).get(page).content.decode()
    assert offered.count("<hp-secret>") == 6
    masked = signed_in(member(gate.team)).get(page).content.decode()
    assert masked.count("<hp-secret>") == 0
    assert "the permission to reveal secrets" in masked
