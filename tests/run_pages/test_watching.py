"""A checkpoint that was saved after the socket opened and before it said what its page shows was never told.

Only pages that watch a run hear of its checkpoints, so the one that landed in that gap stayed unseen until the
run's next fact, or for ever where there was none.
"""

from __future__ import annotations

from channels.db import database_sync_to_async
from django.contrib.sessions.backends.db import SessionStore

from approvals import live
from approvals.live import LiveConsumer
from checkpoints import cursor
from checkpoints.models import Event
from tests.conftest import session_of
from tests.factories import bob, make_team
from tests.pages.sockets import Socket
from tests.run_pages.walks import ORDER, begin


async def test_a_checkpoint_saved_before_the_page_said_what_it_watches_is_told_then() -> None:
    team = await database_sync_to_async(make_team)()
    member = await database_sync_to_async(bob)(team)
    walk = await database_sync_to_async(begin)(team)
    since = await database_sync_to_async(cursor.newest)()
    page = Socket(LiveConsumer, f"after={since}", SessionStore(await database_sync_to_async(session_of)(member)))
    await page.open()
    assert await page.hear_all() == []
    await database_sync_to_async(walk.save)("find_order", {"order": ORDER}, "propose")
    events = await database_sync_to_async(lambda: list(cursor.beyond(Event.objects.order_by("xid", "id"), since)))()
    await live.deliver(events)
    assert await page.hear_all() == []
    await page.say({"watch": [f"run:{walk.run.pk}"]})
    told = await page.hear_all()
    await page.say({"watch": [f"run:{walk.run.pk}"]})
    again = await page.hear_all()
    await page.close()
    assert [(fact["kind"], fact["run"]) for fact in told] == [("checkpoint.saved", f"run:{walk.run.pk}")]
    assert again == []
