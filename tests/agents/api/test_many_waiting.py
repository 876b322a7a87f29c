"""Many requests that wait for one event: their views take turns, and those that are alike share an answer."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents.api.protocol import event_channel
from agents.api.protocol.waiting import AGAIN, AWAITS, TOLD, TURNS, Waiting
from approvals.live.channel_layer import PageLayer
from tests.harness.waiting import PATIENCE


class Crowd:
    """Polls of one gate on a layer of their own, and what their view was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, senders: list[bytes]) -> None:
        self.layer, self.door, self.decided = PageLayer(), Waiting(self.view), False
        monkeypatch.setattr(event_channel, "get_channel_layer", lambda: self.layer)
        self.senders, self.asked, self.inside, self.most = senders, list[tuple[bytes, Any]](), 0, 0
        self.bodies: list[bytes] = []
        self.held: asyncio.Event | None = None

    async def view(self, scope: Any, receive: Any, send: Any) -> None:
        self.asked.append((dict(scope["headers"])[b"authorization"], scope.get(AGAIN)))
        self.inside += 1
        self.most = max(self.most, self.inside)
        decided = self.decided
        if self.held is not None and scope.get(AGAIN):
            await self.held.wait()
        await asyncio.sleep(0)
        self.inside -= 1
        headers = [] if decided else [(AWAITS.encode(), b"gate.1")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"decided" if decided else b"open"})

    async def poll(self, sender: bytes) -> None:
        async def stays() -> Any:
            await asyncio.Event().wait()

        async def send(message: Any) -> None:
            if message["type"] == "http.response.body":
                self.bodies.append(message["body"])

        scope = {
            "type": "http", "method": "GET", "path": "/api/gates/1/outcome", "query_string": b"wait=60",
            "headers": [(b"authorization", sender)],
        }  # fmt: skip
        await self.door(scope, stays, send)

    async def wait(self) -> list[asyncio.Task[None]]:
        """Let all of them wait."""
        polls = [asyncio.create_task(self.poll(sender)) for sender in self.senders]
        while len(self.asked) < len(polls) or self.inside:
            await asyncio.sleep(0)
        return polls

    async def ring(self) -> None:
        await self.layer.group_send("waiting.gate.1", {"type": "event"})

    def again(self) -> list[bytes]:
        """The senders for whom the view was asked once more."""
        return [sender for sender, why in self.asked if why == TOLD]


async def test_an_event_that_wakes_many_who_are_alike_asks_the_view_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Crowd(monkeypatch, [b"Bearer hp_a"] * 300)
    async with asyncio.timeout(PATIENCE):
        polls = await crowd.wait()
        crowd.decided = True
        await crowd.ring()
        await asyncio.gather(*polls)
    assert crowd.bodies == [b"decided"] * 300
    assert len(crowd.again()) <= TURNS
    assert crowd.most <= TURNS


async def test_each_sender_is_answered_by_a_view_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    senders = [f"Bearer hp_{number}".encode() for number in range(40)]
    crowd = Crowd(monkeypatch, senders)
    async with asyncio.timeout(PATIENCE):
        polls = await crowd.wait()
        crowd.decided = True
        await crowd.ring()
        await asyncio.gather(*polls)
    assert sorted(crowd.again()) == sorted(senders)
    assert crowd.most <= TURNS


async def test_nobody_is_answered_by_a_view_that_was_asked_before_its_event(monkeypatch: pytest.MonkeyPatch) -> None:
    crowd = Crowd(monkeypatch, [b"Bearer hp_a"])
    crowd.held = asyncio.Event()
    async with asyncio.timeout(PATIENCE):
        first = await crowd.wait()
        await crowd.ring()
        while not crowd.inside:
            await asyncio.sleep(0)
        asked = len(crowd.asked)
        second = asyncio.create_task(crowd.poll(b"Bearer hp_a"))
        while len(crowd.asked) == asked or crowd.inside > 1:
            await asyncio.sleep(0)
        crowd.decided = True  # the view that is being asked has read the gate before
        await crowd.ring()
        for _ in range(20):
            await asyncio.sleep(0)
        crowd.held.set()
        await asyncio.gather(*first, second)
    assert crowd.bodies == [b"decided"] * 2
