"""Many questions in one call: each its own gate, asked once however often the call is sent."""

from __future__ import annotations

import asyncio

import pytest
from holdpoint import Ask, Invalid, Posting, question, question_each

from approvals.models import Gate
from tests.agents.remote.outside_program import decide
from tests.clients.world import WIRE, World, ended
from tests.harness.waiting import PATIENCE


def questions() -> list[Posting]:
    return [
        question("wire", WIRE, title="Pay invoice 7", thread="night"),
        question_each([Ask("wire", WIRE), Ask("mail", {"to": "ACME"})], title="Pay and tell"),
    ]


def test_each_is_a_gate_of_its_own_and_gone_on_with_by_its_number(world: World) -> None:
    with world.client() as hp:
        first, second = hp.defer_all(questions(), key="nightly-17")
        assert hp.defer_all(questions(), key="nightly-17") == [first, second]
        assert [each.asked.title for each in Gate.objects.filter(team=world.team).order_by("pk")] == [
            "Pay invoice 7", "Pay and tell",
        ]  # fmt: skip
        assert set(world.team.runs.values_list("client__deferred", flat=True)) == {True}
        decide(Gate.objects.get(pk=first.id))
        with hp.resume(first.id, timeout=PATIENCE) as call:
            call.done({"id": call.arguments["to"]})
    assert ended(first.run)["wire_result"] == {"id": "ACME"}
    assert Gate.objects.get(pk=second.id).status == "open"


async def test_only_asked_and_awaited(world: World) -> None:
    async def asks() -> str:
        async with world.awaited() as hp:
            [pending] = await hp.defer_all([question("deploy", {"version": "4.2"})], ask_only=True)
            return (await hp.said(pending.id, timeout=PATIENCE)).decision.by

    told = world.awaits(lambda _: asks())

    await asyncio.to_thread(world.decides)
    assert await asyncio.to_thread(told.result, PATIENCE)
    [gate] = await asyncio.to_thread(lambda: list(Gate.objects.filter(team=world.team)))
    assert gate.asked.allows == (), "nothing is done after it"


def test_none_asks_nothing_and_others_agents_are_asked_apart(world: World) -> None:
    with world.client() as hp:
        assert hp.defer_all([]) == []
        with pytest.raises(ValueError, match="one agent and team"):
            hp.defer_all([question("wire", WIRE), question("wire", WIRE, agent="another")])
        with pytest.raises(Invalid) as refused:
            hp.defer_all([question("wire", WIRE), question("wi re", WIRE)])
    assert "/gates/1/actions/0/id" in str(refused.value)
    assert not Gate.objects.filter(team=world.team).exists()
