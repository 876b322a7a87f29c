"""Whatever a program gets wrong is refused with what to do, before anybody is asked or anything is done twice."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from holdpoint import Ask, Holdpoint, Invalid, NotFound, Problem, Quote, ReportedBefore, RunEnded

from agents.models import Effect
from approvals.models import Gate
from tests.clients.world import WIRE, World
from tests.conftest import SharedWeb
from tests.harness.waiting import PATIENCE

MAIL = {"text": "Where is my money?"}


@pytest.mark.parametrize(
    ("asks", "words"),
    [
        (lambda hp: hp.approve_each.defer([], title="Nothing"), r"/actions: .*at least one action"),
        (lambda hp: hp.approve_each.defer([Ask("wire", WIRE), Ask("wire", WIRE)], title="Twice"), "wire is used twice"),
        (lambda hp: hp.approve.defer("wire", WIRE, pinned=["iban"]), "iban"),
        (lambda hp: hp.approve.defer("wire", WIRE, state={"mail": MAIL},
                                     quotes=[Quote(label="Marit", pointer="/letter/text")]), "/letter/text"),
        (lambda hp: hp.approve.defer("wire", WIRE, state={"wire": 1}), "is the name of an action"),
        (lambda hp: hp.approve.defer("wire", WIRE, schema={"type": "object", "required": ["iban"]}), "iban"),
        (lambda hp: hp.approve.defer("wire", WIRE, policy="nobody-knows-it"), "/policy"),
        (lambda hp: hp.approve.defer("a wire", WIRE), "/actions/0/id"),
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_asked_names_the_place(
    world: World, asks: Callable[[Holdpoint], Any], words: str
) -> None:
    with world.client() as hp, pytest.raises(Invalid, match=words) as refused:
        asks(hp)
    assert refused.value.errors
    assert not Gate.objects.filter(team=world.team).exists()


def test_a_state_that_is_too_large_says_how_large_it_may_be(shared_web: SharedWeb) -> None:
    world = World(shared_web({"HOLDPOINT_STATE_LIMIT": "100000"}))
    with world.client() as hp, pytest.raises(Problem, match="the limit is") as refused:
        hp.approve.defer("wire", {**WIRE, "note": "x" * 200_000})
    assert refused.value.status in (413, 422)


def test_a_gate_that_is_not_there_is_not_resumed(web: str) -> None:
    with World(web).client() as hp:
        for goes_on in (hp.resume, hp.resume_each, hp.said):
            with pytest.raises(NotFound):
                goes_on(987654321)


def test_a_second_report_changes_nothing(world: World) -> None:
    with world.client() as hp:
        gate = hp.approve.defer("wire", WIRE)
        world.decides()
        with hp.resume(gate.id, timeout=PATIENCE) as call:
            call.done({"id": "tx_1"})
            with pytest.raises((ReportedBefore, RunEnded)):
                call.done({"id": "tx_2"})
            call.failed("It was not.")  # evidence, which people see
    row = Effect.objects.get(run=gate.run)
    assert (row.status, row.returned["wire_result"]) == ("done", {"id": "tx_1"})
