"""A request under ASGI goes into a thread once and not once for each middleware."""

from __future__ import annotations

from typing import Any
from unittest import mock

from asgiref.sync import SyncToAsync
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.core.handlers.asgi import ASGIHandler

from config.pages import Pages
from tests.conftest import session_of
from tests.factories import ann, make_team


async def hops(handler: ASGIHandler, cookie: str) -> tuple[int, int]:
    """The status of the inbox, and how often its request went into a thread."""
    untyped: Any = ApplicationCommunicator
    headers = [(b"host", b"localhost"), (b"cookie", cookie.encode()), (b"accept", b"text/html")]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}
    wire = untyped(handler, scope)
    with mock.patch.object(SyncToAsync, "__call__", autospec=True, side_effect=SyncToAsync.__call__) as into:
        await wire.send_input({"type": "http.request", "body": b""})
        said = await wire.receive_output(30)
        while (await wire.receive_output(30)).get("more_body"):
            pass
        await wire.wait(30)
    return said["status"], into.call_count


async def test_the_whole_of_it_is_done_in_its_thread() -> None:
    team = await database_sync_to_async(make_team)()
    cookie = f"sessionid={await database_sync_to_async(session_of)(await database_sync_to_async(ann)(team))}"
    status, ours = await hops(Pages(), cookie)
    _, djangos = await hops(ASGIHandler(), cookie)
    assert status == 200
    assert ours == 3 < djangos, "the start, the answer, the end; if Django's own did as well, ours would not be needed"
