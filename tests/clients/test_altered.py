"""A program does what people approved or nothing: answers are altered on their way, and arguments after a restart."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from holdpoint import Altered, Ask, AsyncHoldpoint, Holdpoint, KeyReused, StillOpen

from agents.models import Effect
from tests.clients.test_approving import wires
from tests.clients.world import WIRE, World
from tests.harness.waiting import PATIENCE

Alter = Callable[[httpx.Request, bytes], bytes]


def altering(place: str, was: str, becomes: str) -> Alter:
    """Replace a text in the answers from the addresses that match."""

    def alter(request: httpx.Request, body: bytes) -> bytes:
        return body.replace(was.encode(), becomes.encode()) if re.search(place, request.url.path) else body

    return alter


class Altering(httpx.HTTPTransport):
    """A network that alters answers."""

    def __init__(self, alter: Alter) -> None:
        super().__init__()
        self.alter = alter

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = super().handle_request(request)
        body = self.alter(request, answer.read())
        return httpx.Response(
            answer.status_code, headers={"Content-Type": answer.headers["Content-Type"]}, content=body
        )


class AsyncAltering(httpx.AsyncHTTPTransport):
    """The same, awaited."""

    def __init__(self, alter: Alter) -> None:
        super().__init__()
        self.alter = alter

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        answer = await super().handle_async_request(request)
        body = self.alter(request, await answer.aread())
        return httpx.Response(
            answer.status_code, headers={"Content-Type": answer.headers["Content-Type"]}, content=body
        )


def approves(hp: Holdpoint, did: list[Any]) -> None:
    with hp.approve("wire", WIRE) as call:
        did.append(call.arguments)


def resumes(hp: Holdpoint, did: list[Any]) -> None:
    with hp.resume(hp.approve.defer("wire", WIRE).id) as call:
        did.append(call.arguments)


def approves_each(hp: Holdpoint, did: list[Any]) -> None:
    with hp.approve_each([Ask("wire", WIRE), Ask("mail", {"to": "a"})], title="Both") as calls:
        did.extend(call.arguments for call in calls)


def calls_decorated(hp: Holdpoint, did: list[Any]) -> None:
    @hp.requires_approval
    def wire(to: str, amount: str) -> None:
        did.append(amount)

    wire(**WIRE)


WAYS = [approves, resumes, approves_each, calls_decorated]
ALTERED = [
    ("/effects$", '"120.00"', '"920.00"'),  # what the program gets
    ("/gates/[0-9]+$", '"120.00"', '"920.00"'),  # the card
    ("/gates/[0-9]+$", '"seen":"', '"seen":"0'),  # what people decided on
]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("place", "was", "becomes"), ALTERED)
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


def test_the_awaited_client_and_a_question_refuse_it_too(world: World) -> None:
    async def asks(hp: AsyncHoldpoint) -> Any:
        return await hp.ask("wire", WIRE)

    told = world.awaits(asks, transport=AsyncAltering(altering("/outcome$", '"120.00"', '"920.00"')))
    world.decides()
    with pytest.raises(Altered, match="not those that people approved"):
        told.result(PATIENCE)


def test_an_edit_that_the_outcome_does_not_tell_is_not_done(world: World) -> None:
    """People's edits are told to the model: a change of which nothing is said would be somebody else's."""
    told = world.runs(wires, transport=Altering(altering("/outcome$", '"edits":{"wire":[', '"edits":{"other":[')))
    gate = world.decides("edit", arguments={"wire": {**WIRE, "amount": "100.00"}})
    with pytest.raises(Altered, match=rf"People were asked at gate {gate.pk} about other arguments of wire"):
        told.result(PATIENCE)


def test_arguments_that_changed_over_a_restart_are_not_done_under_the_old_approval(world: World) -> None:
    key = "invoice-7"
    with world.client() as hp, pytest.raises(StillOpen):
        wires(hp, key=key, timeout=0.0)
    gate = world.decides()
    with world.client() as hp, pytest.raises(KeyReused):
        hp.approve("wire", {**WIRE, "amount": "920.00"}, state={"invoice": 7}, title="Pay invoice 7", key=key)
    assert not Effect.objects.filter(run=gate.run_id).exists()
