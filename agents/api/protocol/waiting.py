"""Answers that wait for something to happen: long polls, and the stream of events (Server-Sent Events).

A request that waits holds no thread and no connection to the database. Its ordinary view answers it, once when it
comes and again after an event that it waits for: so there is one way to read and one permission check. In a header the
view names what it waits for: the groups of the process's channel layer in which the tailer sends facts. The header
never leaves the process.

Where one event wakes many, their views take turns, a few at once: each needs a thread and a connection to the database.
Of requests that are alike, from one sender, one is asked for all.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any
from urllib.parse import parse_qs, urlencode

from channels.layers import get_channel_layer
from django.conf import settings
from django.http.cookie import parse_cookie

from agents.api.protocol import problems
from approvals.live.channel_layer import WAITING, PageLayer

AWAITS = "holdpoint-awaits"  # groups, separated by spaces; one that waits for nothing sends none
AGAIN = "holdpoint.again"  # in the scope, where the view is asked again for one request: why
TOLD, LATER = "told", "later"  # after an event; after so long that its reader is noted as present again
LONGEST = 60.0  # seconds that a request may wait
CHECKED = 15.0  # seconds after which a stream asks its view again, and so whether its reader may still read it
FULL = "The server has reached its number of waiting programs. Most of them are answered in half a minute."
MOST = 5000  # requests of one process that wait; the others are answered at once, and ask again
EACH = 2000  # of them with one token or session, so that nobody takes all the places
TURNS = 8  # views that are asked at once for requests that wait
PATIENT = re.compile(r"/api/(?:gates/(?P<gate>[0-9]{1,18})/outcome|runs/(?P<signals>[0-9]{1,18})/signals/[^/]+|events)")
STREAM = "/api/events/stream"
# Nothing on the way may keep a stream or hold it back.
STREAM_HEADERS = [
    (b"content-type", b"text/event-stream"), (b"cache-control", b"no-store"), (b"x-accel-buffering", b"no"),
]  # fmt: skip


class Ear:
    """A channel of the process's layer, and the groups that it listens to."""

    def __init__(self, layer: PageLayer, channel: str) -> None:
        self.layer, self.channel = layer, channel
        self.groups: set[str] = set()

    async def join(self, groups: list[str]) -> bool:
        """Listen to these groups; return whether one of them is new."""
        new = set(groups) - self.groups
        for group in new:
            await self.layer.group_add(WAITING + group, self.channel)
        self.groups |= new
        return bool(new)

    async def hears(self, gone: asyncio.Future[bool], until: float) -> bool:
        """Wait for an event and drain the channel; return False where the client went away or `until` has passed."""
        future: asyncio.Future[Any] = asyncio.ensure_future(self.layer.receive(self.channel))
        try:
            left = until - asyncio.get_running_loop().time()
            await asyncio.wait({future, gone}, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED)
            heard = future.done() and not gone.done()
        finally:
            future.cancel()
        self.layer.drain(self.channel)
        return heard


@asynccontextmanager
async def listen_to(groups: list[str]) -> AsyncIterator[Ear]:
    layer = get_channel_layer()
    if not isinstance(layer, PageLayer):
        raise TypeError("Requests that wait listen to the process's own channel layer.")
    ear = Ear(layer, await layer.new_channel("waiting"))
    try:
        await ear.join(groups)
        yield ear
    finally:
        for group in ear.groups:
            await layer.group_discard(WAITING + group, ear.channel)
        layer.forget(ear.channel)


Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]


@dataclass
class ViewAnswer:
    """The answer of the ordinary view."""

    status: int = 500
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: bytes = b""

    @property
    def awaits(self) -> list[str]:
        """Return the groups that it waits for."""
        awaited = dict(self.headers).get(AWAITS.encode(), b"")
        return awaited.decode("latin-1").split()

    async def sent(self, send: Send) -> None:
        """Send it, without the internal header."""
        headers = [(name, value) for name, value in self.headers if name.lower() != AWAITS.encode()]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": self.body})


class Waiting:
    """An ASGI application that lets some requests wait, and hands everything else on."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.leaving = asyncio.Event()  # set where this process is about to end
        self.waiting: Counter[bytes] = Counter()  # requests that wait now, by the digest of their token or session
        self.turns = asyncio.Semaphore(TURNS)
        self.soon: dict[Hashable, asyncio.Task[ViewAnswer]] = {}  # answers whose views are not asked yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        found = PATIENT.fullmatch(scope["path"]) if scope["method"] == "GET" else None
        wait = _seconds(scope) if found else 0.0
        streams = scope["path"] == STREAM and scope["method"] == "GET"
        full = bool(streams or wait) and self.full(_sender(scope))
        if full and streams:
            headers = [(b"content-type", problems.MEDIA_TYPE.encode()), (b"retry-after", b"30")]
            await ViewAnswer(503, headers, problems.encode_problem(STREAM, 503, FULL)).sent(send)
        elif streams:
            with self.counted(_sender(scope)):
                await Stream(self, scope, receive, send).run()
        elif found and wait > 0 and not full:
            with self.counted(_sender(scope)):
                known = [f"{noun}.{id}" for noun, id in found.groupdict().items() if id]
                await self.poll(scope, receive, send, wait=wait, known=known)
        elif found:
            await (await self._ask(scope)).sent(send)
        else:
            await self.application(scope, receive, send)

    def leave(self) -> None:
        """Answer every poll as if its time were over and end every stream, so that clients reconnect elsewhere."""
        self.leaving.set()

    async def gone(self, receive: Receive) -> bool:
        """Wait until the client goes away (True) or this process is about to end (False)."""
        ends = [asyncio.ensure_future(_disconnected(receive)), asyncio.ensure_future(self.leaving.wait())]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            return ends[0].done()
        finally:
            for end in ends:
                end.cancel()

    def full(self, sender: bytes) -> bool:
        """Tell whether no more may wait, in all or of this sender."""
        return self.waiting.total() >= MOST or self.waiting[sender] >= EACH

    @contextmanager
    def counted(self, sender: bytes) -> Iterator[None]:
        """Count one more waiting request, inside."""
        self.waiting[sender] += 1
        try:
            yield
        finally:
            self.waiting[sender] -= 1
            if not self.waiting[sender]:
                del self.waiting[sender]

    async def poll(self, scope: Scope, receive: Receive, send: Send, *, wait: float, known: list[str]) -> None:
        """Answer when there is something new, or when `wait` seconds have passed.

        `known` are groups to listen to before the first look, so that no event is missed in between.
        """
        gone = asyncio.ensure_future(self.gone(receive))
        until = asyncio.get_running_loop().time() + wait
        try:
            async with listen_to(known) as ear:
                answer = await self.ask(scope)
                while answer.awaits and not gone.done():
                    # A group that is new here may have had an event meanwhile.
                    if not await ear.join(answer.awaits) and not await ear.hears(gone, until):
                        break
                    answer = await self.ask_again(scope)
            if not (gone.done() and gone.result()):
                await answer.sent(send)
        finally:
            gone.cancel()

    async def ask_again(self, scope: Scope) -> ViewAnswer:
        """Return the view's answer after an event, the same one for all requests that are alike and were woken by it.

        They join one that has its turn yet to come, so that its view reads what woke them.
        """
        sender = (scope.get("client") or ("",))[0]
        like = (scope["path"], scope["query_string"], sender, *map(tuple, scope["headers"]))
        if like not in self.soon:
            self.soon[like] = asyncio.ensure_future(self._asked_again(like, scope))
        return await asyncio.shield(self.soon[like])

    async def _asked_again(self, like: Hashable, scope: Scope) -> ViewAnswer:
        async with self.turns:
            del self.soon[like]
            return await self._ask({**scope, AGAIN: TOLD})

    async def ask(self, scope: Scope, **query: str) -> ViewAnswer:
        """Return the ordinary view's answer now; `query` replaces the request's own parameters of those names."""
        async with self.turns:
            return await self._ask(scope, **query)

    async def _ask(self, scope: Scope, **query: str) -> ViewAnswer:
        answer = ViewAnswer()
        asked = {name: values[-1] for name, values in parse_qs(scope["query_string"].decode("latin-1")).items()}
        inner = {**scope, "query_string": urlencode({**asked, **query}).encode()} if query else scope
        began = False

        async def receive() -> Mapping[str, Any]:
            nonlocal began
            if began:
                await asyncio.Event().wait()  # Django listens for a client that goes away until it has answered
            began = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answer.status, answer.headers = message["status"], list(message["headers"])
            else:
                answer.body += message.get("body", b"")

        await self.application(inner, receive, send)
        return answer


class Stream:
    """One open stream of events.

    After each event, and every CHECKED seconds, the view is asked again, from the place where its last answer ended.
    """

    def __init__(self, waiting: Waiting, scope: Scope, receive: Receive, send: Send) -> None:
        # The view's answers are parsed here: they may be neither compressed nor 304.
        headers = [header for header in scope["headers"] if header[0] not in (b"accept-encoding", b"if-none-match")]
        self.waiting, self.scope, self.receive, self.send = waiting, {**scope, "headers": headers}, receive, send
        self.cursor = dict(headers).get(b"last-event-id", b"").decode("latin-1")  # a reader who was cut off sends it
        self.checked = 0.0  # when its reader was last noted as present

    async def run(self) -> None:
        """Serve it until the reader goes away or may read no more."""
        gone = asyncio.ensure_future(self.waiting.gone(self.receive))
        try:
            async with listen_to([]) as ear:
                first = await self.read()
                if first.status != 200:
                    await first.sent(self.send)
                    return
                await ear.join(first.awaits)
                await self.send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
                await self.tell(first)
                while not gone.done():
                    if not await self.tell_all(ear):
                        return
                    await ear.hears(gone, asyncio.get_running_loop().time() + CHECKED)
                if not gone.result():
                    await self.send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()

    async def read(self) -> ViewAnswer:
        """Return the events after the cursor."""
        now = asyncio.get_running_loop().time()
        if self.checked:
            self.scope[AGAIN] = TOLD if now - self.checked < CHECKED else LATER
        if self.scope.get(AGAIN) != TOLD:
            self.checked = now
        return await self.waiting.ask(self.scope, **({"after": self.cursor} if self.cursor else {}))

    async def tell_all(self, ear: Ear) -> bool:
        """Send what has come since; return False where this reader may read no more, which they are told.

        Only an answer without events names the groups to wait for. A new group may have had an event meanwhile, so the
        view is asked once more.
        """
        more = True
        while more:
            answer = await self.read()
            if answer.status != 200:
                await self.say(f"event: end\ndata: {answer.body.decode(errors='replace')}\n\n")
                await self.send({"type": "http.response.body", "body": b""})
                return False
            more = await self.tell(answer)
            more = await ear.join(answer.awaits) or more
        return True

    async def tell(self, answer: ViewAnswer) -> bool:
        """Send the events of an answer, or a comment where there are none; return whether more wait behind them."""
        page = json.loads(answer.body)
        lines = [f"id: {fact['cursor']}\nevent: {fact['kind']}\ndata: {json.dumps(fact)}\n\n" for fact in page["items"]]
        if page["next"] != self.cursor or lines:
            lines.append(f"id: {page['next']}\n: \n\n")
        self.cursor = page["next"]
        await self.say("".join(lines) or ": \n\n")
        return bool(page["more"])

    async def say(self, lines: str) -> None:
        """Send some lines."""
        await self.send({"type": "http.response.body", "body": lines.encode(), "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _sender(scope: Scope) -> bytes:
    """Return a digest of the token or session that lets it in, and of nothing else that the sender could vary."""
    sent = dict(scope["headers"])
    token = sent.get(b"authorization", b"").rpartition(b" ")[2]
    session = parse_cookie(sent.get(b"cookie", b"").decode("latin-1")).get(settings.SESSION_COOKIE_NAME, "")
    return blake2b(token or session.encode(), digest_size=16).digest()


def _seconds(scope: Scope) -> float:
    """Return the seconds of ?wait=; 0 for junk, which the view refuses at once."""
    asked = parse_qs(scope["query_string"].decode("latin-1")).get("wait", ["0"])[-1]
    try:
        wait = float(asked)
    except ValueError:
        return 0.0
    return wait if 0 < wait <= LONGEST else 0.0
