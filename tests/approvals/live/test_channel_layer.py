"""The channel layer of one process: everybody in a group gets what is sent, and whoever falls behind is told."""

from __future__ import annotations

import asyncio
from unittest import mock

import pytest
from channels.db import database_sync_to_async
from django.conf import settings
from django.db import OperationalError

from approvals.live import consumer
from approvals.live.channel_layer import PageLayer
from approvals.live.consumer import LiveConsumer
from checkpoints.events import commit_order
from checkpoints.models import Event
from tests.factories import ann, make_gate, make_team
from tests.harness import horizon
from tests.harness.waiting import PATIENCE

from .test_socket import Impatient, socket


async def test_a_group_gets_what_is_sent_and_who_left_it_does_not() -> None:
    layer = PageLayer()
    one, two = await layer.new_channel("specific"), await layer.new_channel("specific")
    assert one != two
    for each in (one, two):
        await layer.group_add("team.1", each)
        await layer.group_add("team.2", each)
    await layer.group_send("team.1", {"type": "facts", "n": 1})
    await layer.group_discard("team.1", two)
    await layer.group_send("team.1", {"type": "facts", "n": 2})
    await layer.group_send("team.2", {"type": "facts", "n": 3})
    await layer.group_send("team.3", {"type": "facts", "n": 4})
    await layer.send(one, {"type": "facts", "n": 5})
    assert [(await layer.receive(one))["n"] for _ in range(4)] == [1, 2, 3, 5]
    assert [(await layer.receive(two))["n"] for _ in range(2)] == [1, 3]


async def test_whoever_falls_behind_gets_one_word_for_all_that_was_dropped_and_then_goes_on() -> None:
    layer = PageLayer(capacity=3)
    slow, quick = await layer.new_channel(), await layer.new_channel()
    for each in (slow, quick):
        await layer.group_add("team.1", each)
    for n in range(4):
        await layer.group_send("team.1", {"type": "facts", "n": n})
        assert (await layer.receive(quick))["n"] == n
    await layer.group_send("team.1", {"type": "facts", "n": 4})
    assert await layer.receive(slow) == {"type": "overrun"}
    assert (await layer.receive(slow))["n"] == 4


async def test_requests_that_wait_are_woken_before_the_titles_for_pages_are_read() -> None:
    """They waited for a statement that they do not need: 2 ms of the 17 from a decision to the program."""
    layer = PageLayer()
    program, page = await layer.new_channel(), await layer.new_channel()
    await layer.group_add("waiting.gate.7", program)
    await layer.group_add("gate.7", page)
    decided = Event(xid=1, id=1, kind="gate.decided", subject="gate:7", run_id=3, team_id=2)
    with mock.patch.object(consumer, "get_channel_layer", return_value=layer):
        with (
            mock.patch.object(consumer, "titles_of", side_effect=OperationalError("away")),
            pytest.raises(OperationalError),
        ):
            await consumer.deliver([decided])
        assert await asyncio.wait_for(layer.receive(program), PATIENCE) == {"type": "event"}
        assert page not in layer._left
        await consumer.deliver([decided])
    assert (await asyncio.wait_for(layer.receive(page), PATIENCE))["type"] == "facts"


async def test_what_was_left_for_a_page_that_is_gone_is_dropped() -> None:
    layer = PageLayer()
    page = await layer.new_channel()
    await layer.group_add("team.1", page)
    await layer.group_send("team.1", {"type": "facts"})
    await layer.group_discard("team.1", page)
    layer.forget(page)
    await layer.group_send("team.1", {"type": "facts"})
    assert (layer.groups, layer._left) == ({}, {})


@pytest.mark.parametrize("name", ["a b", "ä", "", "x" * 101])
async def test_junk_is_no_name(name: str) -> None:
    layer = PageLayer()
    for call in (layer.group_send(name, {}), layer.group_add(name, "page"), layer.send(name, {}), layer.receive(name)):
        with pytest.raises(TypeError):
            await call


def test_the_application_uses_it() -> None:
    assert settings.CHANNEL_LAYERS["default"]["BACKEND"] == f"{PageLayer.__module__}.{PageLayer.__name__}"


async def test_a_page_that_fell_behind_is_told_to_start_over_from_what_is_newest() -> None:
    """What did not fit was dropped without a word, and the page showed what was no longer so."""
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(ann)(team)

    class Known(Impatient):
        made: list[LiveConsumer] = []

        async def connect(self) -> None:
            self.made.append(self)
            await super().connect()

    async with socket(member, consumer=Known) as page:
        assert (await page.hear())["kind"] == "heartbeat"
        since = await database_sync_to_async(commit_order.newest_cursor)()
        await database_sync_to_async(make_gate)(team=team)
        await database_sync_to_async(horizon.reached)()
        (consumer,) = Known.made
        await consumer.channel_layer.send(consumer.channel_name, {"type": "overrun"})
        async with asyncio.timeout(30):
            while (said := await page.hear())["kind"] == "heartbeat":
                pass
    assert said["kind"] == "reset"
    assert commit_order.Cursor.parse(said["cursor"]) > since
