"""A checkpoint that was saved after the socket opened and before it said what its page shows was never told.

Only pages that watch a run hear of its checkpoints, so the one that landed in that gap stayed unseen until the
run's next fact, or for ever where there was none.
"""

from __future__ import annotations

from channels.db import database_sync_to_async

from approvals.live import consumer, ephemeral
from approvals.live.consumer import LiveConsumer
from approvals.sessions import SessionStore
from checkpoints.events import commit_order
from checkpoints.models import Event, Run
from tests.agents.pages.stored_histories import ORDER, begin
from tests.factories import bob, eve, make_team
from tests.harness.open_sockets import Socket
from tests.harness.signed_in_clients import session_of
from tests.harness.waiting import until

from .test_socket import socket


def newest_of(run: Run) -> Event:
    """The event of the run's newest checkpoint, once no transaction is open that began before it."""
    event = Event.objects.filter(run_id=run.pk, kind="checkpoint.saved").latest("id")
    until(lambda: commit_order.settled_events().filter(pk=event.pk).exists())
    return event


async def test_a_checkpoint_saved_before_the_page_said_what_it_watches_is_told_then() -> None:
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(bob)(team)
    walk = await database_sync_to_async(begin)(team)
    since = await database_sync_to_async(commit_order.newest_cursor)()
    page = Socket(LiveConsumer, f"after={since}", SessionStore(await database_sync_to_async(session_of)(member)))
    await page.open()
    await page.hear_all()
    await database_sync_to_async(walk.save)("find_order", {"order": ORDER}, "propose")
    saved = await database_sync_to_async(newest_of)(walk.run)
    await consumer.deliver([saved])
    # On a slow machine the opening's own replay may come this late, and tells it: once is what counts.
    told = await page.hear_all()
    await page.say({"watch": [f"run:{walk.run.pk}"]})
    if not told:
        told = [await page.hear()]
    told += await page.hear_all()
    await page.say({"watch": [f"run:{walk.run.pk}"]})
    again = await page.hear_all()
    await page.close()
    assert [fact["run"] for fact in told if fact["kind"] == "checkpoint.saved"] == [f"run:{walk.run.pk}"]
    assert again == []


async def test_a_page_that_comes_to_watch_a_running_step_is_told_to_look_at_once() -> None:
    """What was said between the drawing of the page and its watching was told to nobody, and stayed unseen for long."""
    team = await database_sync_to_async(make_team)()
    member, outsider = await database_sync_to_async(bob)(team), await database_sync_to_async(eve)()
    run = await database_sync_to_async(lambda: begin(team).run)()
    watch = {"watch": [f"run:{run.pk}", f"spoken:{run.pk}", "spoken:x", "spoken:0"]}
    async with socket(member) as mine, socket(outsider) as theirs:
        await mine.say(watch)
        await theirs.say(watch)
        told = {"kind": "run.spoke", "subject": f"spoken:{run.pk}"}
        assert await mine.hear() == told
        await mine.say(watch)
        assert await mine.hear_all() == []
        await ephemeral.hand_on(
            {"type": "message", "channel": ephemeral.channel(ephemeral.SPOKEN).encode(), "data": str(run.pk).encode()}
        )
        assert await mine.hear() == told
        assert await theirs.hear_all() == []
