"""A request under ASGI goes into a thread once and not once for each middleware, and threads are used again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any
from unittest import mock

from asgiref.sync import SyncToAsync
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.core.handlers.asgi import ASGIHandler
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse

from config.web.pages import PagesHandler
from tests.factories import ann, make_team
from tests.harness.signed_in_clients import session_of
from tests.harness.waiting import PATIENCE


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
    status, ours = await hops(PagesHandler(), cookie)
    _, djangos = await hops(ASGIHandler(), cookie)
    assert status == 200
    assert ours == 1 < djangos, "if Django's own did as well, ours would not be needed"


class Held(PagesHandler):
    """It says which thread a request is answered in; one for /held/ is held there until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.come, self.go = threading.Event(), threading.Event()
        self.held = ""

    def get_response(self, request: HttpRequest) -> HttpResponse:
        if request.path == "/held/":
            self.held = str(threading.get_ident())
            self.come.set()
            self.go.wait(PATIENCE)
        return HttpResponse(str(threading.get_ident()))


def asked(handler: ASGIHandler, path: str) -> Any:
    untyped: Any = ApplicationCommunicator
    return untyped(handler, {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []})


async def thread_of(handler: ASGIHandler) -> str:
    wire = asked(handler, "/")
    await wire.send_input({"type": "http.request", "body": b""})
    assert (await wire.receive_output(PATIENCE))["status"] == 200
    body = (await wire.receive_output(PATIENCE))["body"].decode()
    await wire.wait(PATIENCE)
    return str(body)


async def rested(handler: PagesHandler, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while len(handler._idle) != count:
            await asyncio.sleep(0.01)


async def test_one_request_after_another_is_answered_by_the_same_thread() -> None:
    handler = Held()
    first = await thread_of(handler)
    await rested(handler, 1)
    assert await thread_of(handler) == first


async def test_a_thread_that_is_still_at_work_for_somebody_who_left_answers_nobody_else() -> None:
    handler = Held()
    wire = asked(handler, "/held/")
    await wire.send_input({"type": "http.request", "body": b""})
    await asyncio.to_thread(handler.come.wait, PATIENCE)
    await wire.send_input({"type": "http.disconnect"})
    leaving = asyncio.create_task(wire.wait(PATIENCE))
    others = {await thread_of(handler) for _ in range(3)}
    assert handler.held not in others
    handler.go.set()
    await leaving
    await rested(handler, len(others) + 1)


class Given(PagesHandler):
    def __init__(self, response: HttpResponse | StreamingHttpResponse) -> None:
        super().__init__()
        self.response = response

    def get_response(self, request: HttpRequest) -> Any:
        return self.response


async def test_a_whole_answer_is_closed_before_it_is_sent() -> None:
    """A slow client kept the connection to the database that its answer had been read by."""
    given = HttpResponse("all of it")
    wire = asked(Given(given), "/")
    closed = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: dict[str, Any]) -> None:
        closed.append((given.closed, message.get("body")))

    await Given(given)(wire.scope, receive, send)
    assert closed == [(True, None), (True, b"all of it")]


async def test_a_stream_ends_and_is_closed_where_its_client_leaves() -> None:
    ended = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        try:
            yield b"the first"
            await asyncio.Event().wait()
        finally:
            ended.set()

    given = StreamingHttpResponse(endless())
    wire = asked(Given(given), "/")
    await wire.send_input({"type": "http.request", "body": b""})
    assert (await wire.receive_output(PATIENCE))["status"] == 200
    assert (await wire.receive_output(PATIENCE))["body"] == b"the first"
    assert not given.closed
    await wire.send_input({"type": "http.disconnect"})
    async with asyncio.timeout(PATIENCE):  # before `wait`, which would cancel it after its own time
        await ended.wait()
    await wire.wait(PATIENCE)
    assert given.closed
