"""A program does what people approved or nothing: answers are altered on their way, and arguments after a restart."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from holdpoint import Altered, Ask, Holdpoint
from holdpoint.answers import Gate
from holdpoint.errors import NotJson
from holdpoint.exact_calls import VALUE, approved_arguments, digest_values, edited, encode_canonical

from agents.models import Effect
from tests.clients.world import WIRE, World, wires
from tests.harness.examples import first_alone
from tests.harness.waiting import PATIENCE

Alter = Callable[[httpx.Request, bytes], bytes]


def altering(place: str, was: str, becomes: str) -> Alter:
    def alter(request: httpx.Request, body: bytes) -> bytes:
        return body.replace(was.encode(), becomes.encode()) if re.search(place, request.url.path) else body

    return alter


class Altering(httpx.HTTPTransport):
    def __init__(self, alter: Alter) -> None:
        super().__init__()
        self.alter = alter

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        body = self.alter(request, answer.read())
        return httpx.Response(
            answer.status_code, headers={"Content-Type": answer.headers["Content-Type"]}, content=body
        )


def approves(hp: Holdpoint, did: list[Any]) -> None:
    with hp.approve("wire", WIRE) as call:
        did.append(call.arguments)


def approves_each(hp: Holdpoint, did: list[Any]) -> None:
    with hp.approve_each([Ask("wire", WIRE), Ask("mail", {"to": "a"})], title="Both") as calls:
        did.extend(call.arguments for call in calls)


ALTERED = [
    ("/effects$", '"120.00"', '"920.00"'),  # what the program gets
    ("/gates/[0-9]+$", '"120.00"', '"920.00"'),  # the card
    ("/gates/[0-9]+$", '"seen":"', '"seen":"0'),  # what people decided on
]


@pytest.mark.parametrize(
    ("way", "place", "was", "becomes"),
    first_alone([(approves_each, *ALTERED[0]), *((approves, *altered) for altered in reversed(ALTERED))], 2),
)
def test_what_differs_from_what_people_approved_is_not_done(
    world: World, way: Callable[[Holdpoint, list[Any]], None], place: str, was: str, becomes: str
) -> None:
    did = list[Any]()
    told = world.runs(lambda hp: way(hp, did), transport=Altering(altering(place, was, becomes)))
    gate = world.decides()
    with pytest.raises(Altered, match=rf"The arguments of wire are not those that people approved at gate {gate.pk}"):
        told.result(PATIENCE)
    assert did == []
    assert Effect.objects.get(run=gate.run_id).status == "failed"


def test_a_question_refuses_it_too_and_an_edit_that_the_outcome_does_not_tell_is_not_done(world: World) -> None:
    """People's edits are told to the model: a change of which nothing is said would be somebody else's."""
    told: Any = world.runs(
        lambda hp: hp.ask("wire", WIRE), transport=Altering(altering("/outcome$", '"120.00"', '"920.00"'))
    )
    world.decides()
    with pytest.raises(Altered, match="not those that people approved"):
        told.result(PATIENCE)
    told = world.runs(wires, transport=Altering(altering("/outcome$", '"edits":{"wire":[', '"edits":{"other":[')))
    gate = world.decides("edit", arguments={"wire": {**WIRE, "amount": "100.00"}})
    with pytest.raises(Altered, match=rf"People were asked at gate {gate.pk} about other arguments of wire"):
        told.result(PATIENCE)


ASKED: dict[str, Any] = {"path": "a", "lines": [1, 2], "deep": {"a/b": 1, "~": None}}
AT = "2026-03-02T09:15:05Z"


def decided(arguments: Any, *, masked: list[str] | None = None, **more: Any) -> Gate:
    card = {"title": "Write", "actions": [{"id": "write", "arguments": arguments}]}
    seen = hashlib.sha256(VALUE + encode_canonical(card)).hexdigest()
    known: dict[str, Any] = {
        "id": 4, "run": 2, "agent": "teller", "team": "Support", "step": "ask", "kind": "review", "status": "decided",
        "version": 2, "title": "Write", "risk": "low", "opened_at": AT, "card": card, "digest": seen,
        "masked": masked or [], "agreement": {"quorum": 1, "agreed": 1, "who": "", "voices": []},
        "outcome": {"kind": "approved", "by": "Ann", "at": AT, "seen": seen},
    }  # fmt: skip
    return Gate.model_validate(known | more)


@pytest.mark.parametrize(
    "got",
    [
        {**ASKED, "path": "b"}, {**ASKED, "more": 1}, {"path": "a"}, {**ASKED, "lines": [1, 2.0]},
        {**ASKED, "lines": [True, 2]}, {**ASKED, "path": "a\u200b"},
    ],
)  # fmt: skip
def test_arguments_that_nobody_approved_are_refused(got: dict[str, Any]) -> None:
    with pytest.raises(Altered, match="not those that people approved at gate 4"):
        approved_arguments(decided(ASKED), "write", got)
    with pytest.raises(Altered, match="People were asked at gate 4 about other arguments of write"):
        approved_arguments(decided(got), "write", got, asked=ASKED)
    turned = dict(reversed(ASKED.items()))  # the order of names says nothing
    assert approved_arguments(decided(ASKED), "write", turned, asked=ASKED) == ASKED


def test_another_card_than_people_decided_on_is_refused() -> None:
    whole = decided(ASKED)
    assert whole.outcome is not None
    other = {**whole.card, "title": "Read"}
    for gate in (
        whole.model_copy(update={"card": other}),
        whole.model_copy(update={"digest": "0" * 64}),
        whole.model_copy(update={"outcome": whole.outcome.model_copy(update={"seen": "0" * 64})}),
        whole.model_copy(update={"digest": "", "masked": ["/actions/0/arguments/path"],
                                 "outcome": whole.outcome.model_copy(update={"seen": ""})}),
        whole.model_copy(update={"outcome": None}),
    ):  # fmt: skip
        with pytest.raises(Altered):
            approved_arguments(gate, "write", ASKED)
    with pytest.raises(Altered):
        approved_arguments(whole, "read", ASKED)


@pytest.mark.parametrize("place", ["/path", "/lines/1", "/deep/a~1b", "/deep", "/nothing", ""])
def test_secrets_are_compared_with_nothing_and_all_else_is(place: str) -> None:
    hidden: dict[str, Any] = {
        "/path": {**ASKED, "path": "•••"}, "/lines/1": {**ASKED, "lines": [1, "•••"]},
        "/deep/a~1b": {**ASKED, "deep": {"a/b": "•••", "~": None}}, "/deep": {**ASKED, "deep": "•••"}, "": "•••",
    }  # fmt: skip
    gate = decided(hidden.get(place, ASKED), masked=[f"/actions/0/arguments{place}"])
    assert approved_arguments(gate, "write", ASKED, asked=ASKED) == ASKED
    if place:
        with pytest.raises(Altered):
            approved_arguments(gate, "write", {**ASKED, "more": 1})


@pytest.mark.parametrize(
    ("edits", "got"),
    [
        ([{"op": "replace", "path": "/path", "value": "b"}], {**ASKED, "path": "b"}),
        ([{"op": "add", "path": "/lines/0", "value": 0}], {**ASKED, "lines": [0, 1, 2]}),
        ([{"op": "add", "path": "/lines/-", "value": 3}], {**ASKED, "lines": [1, 2, 3]}),
        ([{"op": "remove", "path": "/lines/1"}], {**ASKED, "lines": [1]}),
        ([{"op": "replace", "path": "/deep/a~1b", "value": 2}], {**ASKED, "deep": {"a/b": 2, "~": None}}),
        ([{"op": "remove", "path": "/deep/~0"}], {**ASKED, "deep": {"a/b": 1}}),
        ([{"op": "replace", "path": "", "value": {"path": "c"}}], {"path": "c"}),
    ],
)
def test_peoples_edits_are_what_is_done(edits: list[dict[str, Any]], got: dict[str, Any]) -> None:
    assert approved_arguments(decided(got), "write", got, asked=ASKED, edits=edits) == got
    smuggled = {**got, "smuggled": True}
    with pytest.raises(Altered, match="about other arguments"):
        approved_arguments(decided(smuggled), "write", smuggled, asked=ASKED, edits=edits)


def test_an_edit_that_does_not_fit_and_what_has_no_digest_is_refused() -> None:
    for edit in (
        {"op": "move", "path": "/path", "from": "/lines"}, {"op": "remove", "path": "/nothing"},
        {"op": "add", "path": "/lines/9", "value": 1}, {"op": "replace", "path": "/path/x", "value": 1},
    ):  # fmt: skip
        with pytest.raises(Altered, match="does not fit"):
            edited(ASKED, [edit])
    for value in (float("nan"), float("inf"), object(), "\ud800"):
        with pytest.raises(NotJson):
            digest_values({"a": value})
