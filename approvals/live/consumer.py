"""The live socket: facts, never content.

One tailer per web process reads events and passes each on to the groups of people who may know of it, which `audience`
decides once per event. A browser that receives a fact fetches the part of its page that the fact is about through the
ordinary address, where permission is checked again.

server -> {"cursor", "kind", "subject", "run", "version", "title"}; {"kind": "heartbeat", "cursor"};
          {"kind": "reset", "cursor"} where too much happened for single facts
          {"kind": "gate.looking", "subject": "looking:42"} where somebody opened a gate's page or left it
          {"kind": "run.spoke", "subject": "spoken:7"} where a running step reports progress (agents.steps.mid_step)
client -> {"ping": true}, which a heartbeat answers at once
          {"watch": ["run:7", "gate:42"], "looking": 42, "proposal": 3}: the gate and the version that the page
          shows; no "looking" while it is out of sight
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncIterator, Set
from dataclasses import dataclass, field
from typing import Any, TypedDict, cast

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from channels.layers import get_channel_layer
from django.db import InterfaceError, OperationalError
from django.urls import path
from structlog import get_logger

from checkpoints.events.commit_order import Cursor, newest_cursor
from checkpoints.events.tailer import Tailer, end_task
from checkpoints.models import Event

from . import channel_layer
from .access import Access, WatchedPage, accesses
from .batched_questions import Batched
from .channel_layer import WAITING, PageLayer
from .facts import OF_ACCESS, Fact, audience, fact_of
from .replay import read_missed, titles_of

REVOKED = 4401
UNCHECKED = 1011  # RFC 6455: an error of the server
TOO_MANY = 1008  # RFC 6455: a message that the server's policy does not take
TOO_LARGE = 1009  # RFC 6455: a message that is too big to be read
LARGEST = 32 * 1024  # characters of a frame, many times what a page sends
AT_ONCE = 120  # frames of one socket
A_SECOND = 4.0  # frames added to its bucket
WATCHED = 50  # subjects one page may watch
log = get_logger()
check_access = Batched(accesses)
look_back = Batched(read_missed)
reading: list[Tailer] = []  # of this process, while its server runs


class GroupMessage(TypedDict):
    """A message of the tailer to a group; "" where a page looked for itself."""

    type: str
    group: str
    facts: list[Fact]


@dataclass
class FrameRate:
    """A token bucket of frames. A page sends one when what it shows changes, a few times a minute."""

    left: float = AT_ONCE
    since: float = field(default_factory=time.monotonic)

    def allows(self, *, now: float | None = None) -> bool:
        """Take one frame from the bucket; return whether there was one."""
        now = time.monotonic() if now is None else now
        self.left = min(self.left + (now - self.since) * A_SECOND, AT_ONCE)
        self.since = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class LiveConsumer(AsyncJsonWebsocketConsumer):
    """The socket of one open page."""

    heartbeat = 15.0  # seconds; access is checked again at each
    ended = False  # closed by the server; messages under way may still arrive
    groups_joined: Set[str] = frozenset()
    reader = ""  # the id of the person for whom the page was drawn, where it says so
    beat: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the page, and clean up even where a message fails, as no disconnect comes then."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self.beat:
                self.beat.cancel()
            await self.join(set())
            cast(PageLayer, self.channel_layer).forget(self.channel_name)

    async def connect(self) -> None:
        await self.accept()
        self.watching: set[str] = set()
        self.pace = FrameRate()
        self.told: deque[str] = deque(maxlen=1000)
        self.looking = self.noted = 0  # the gate in sight, and the one last recorded as such; 0: none
        self.proposal = self.visited = 0  # the version of it that the page shows, and the one recorded as seen
        self.reader = self.asked("reader")
        self.cursor = self.drawn_at = self.asked_cursor()
        self.known = self.cursor or Cursor()  # up to here the page knows everything
        if await self.check() is None:
            return
        if self.cursor is not None:
            await self.replay(self.cursor)
        self.beat = asyncio.create_task(self.keep_beating())

    async def disconnect(self, code: int) -> None:
        if self.beat:
            self.beat.cancel()
        self.looking = 0
        await self.look(None)

    async def close(self, code: int | None = None, reason: str | None = None) -> None:
        """Close the socket once and leave all groups, as the browser may disconnect late or never."""
        if not self.ended:
            self.ended = True
            await self.join(set())
            await super().close(code=code, reason=reason)

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Handle facts directly; for other messages Channels first closes old database connections in a thread."""
        if self.ended and message["type"] != "websocket.disconnect":
            return
        if message["type"] == "facts":
            await self.facts(cast(GroupMessage, message))
        else:
            await super().dispatch(message)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any) -> None:
        """Take a frame of JSON; any other frame is ignored, but counts towards the rate.

        A socket that sends far more than a page does is closed: each frame with something new costs a check of access,
        each other one its parsing.
        """
        if not self.pace.allows():
            await self.close(code=TOO_MANY)
            return
        if len(text_data or "") > LARGEST:
            await self.close(code=TOO_LARGE)
            return
        try:
            content = await self.decode_json(text_data or "")
        except (ValueError, RecursionError):
            return
        await self.receive_json(content)

    async def receive_json(self, content: Any, **kwargs: Any) -> None:
        if isinstance(content, dict) and content.get("ping") is True:
            await self.send_json({"kind": "heartbeat", "cursor": str(self.cursor or "")})
            return
        asked = content.get("watch") if isinstance(content, dict) else None
        if not isinstance(asked, list) or not all(isinstance(each, str) for each in asked):
            return
        seen = content.get("looking")
        looking = seen if type(seen) is int and 0 < seen < 2**63 else 0
        number = content.get("proposal")
        self.proposal = number if type(number) is int and 0 < number < 2**31 else 0
        said = set(asked[:WATCHED]), looking
        if said == (self.watching, self.looking) and self.drawn_at is None:
            return  # nothing new is asked, and every heartbeat checks access
        new = said[0] - self.watching
        self.watching, self.looking = said
        heard = self.groups_joined
        access = await self.check()
        # A page starts to watch a moment after it was drawn, so replay what only watchers heard in between.
        since, self.drawn_at = self.drawn_at or self.cursor, None
        if access is not None and since is not None and self.groups_joined - heard:
            await self.replay(since)
        # A step's report since the drawing was not sent to this page, and the next one may take long.
        runs = access.watched if access is not None else frozenset()
        for kind, _, run in (subject.partition(":") for subject in new):
            if kind == channel_layer.SPOKEN and f"run.{run}" in runs:
                await self.spoke({"number": run})

    async def facts(self, message: GroupMessage) -> None:
        """Send the tailer's facts; one that arrives through two groups is sent once.

        A tailer that is behind may come to what the page heard by an earlier socket, as its cursor says. A fact of the
        person's access is for the server: this socket may be over, or may have left groups whose messages wait here.
        """
        of_access = [fact for fact in message["facts"] if fact["kind"] in OF_ACCESS]
        if of_access and await self.check() is None:
            return
        if message["group"] and message["group"] not in self.groups_joined:
            return
        for fact in message["facts"]:
            if fact in of_access:
                continue
            at = Cursor.parse(fact["cursor"])
            if at > self.known and fact["cursor"] not in self.told:
                self.told.append(fact["cursor"])
                self.cursor = max(at, self.cursor or at)
                await self.send_json(fact)

    async def overrun(self, message: dict[str, Any]) -> None:
        """Have the page start over from the newest event, since it fell behind."""
        await self.reset()

    async def looked(self, message: dict[str, Any]) -> None:
        """Tell the page that somebody opened a gate that it shows, or left it."""
        await self.send_json({"kind": "gate.looking", "subject": f"looking:{message['number']}"})

    async def spoke(self, message: dict[str, Any]) -> None:
        """Tell the page that the current step of a run that it shows reports progress."""
        await self.send_json({"kind": "run.spoke", "subject": f"spoken:{message['number']}"})

    async def check(self) -> Access | None:
        """Read this person's access now, and join its groups; None where the session has ended, or is another's now."""
        access = await check_access(self.watched_page())
        if access is None or self.reader not in ("", str(access.user.pk)):
            await self.close(code=REVOKED)
        if access is None or self.ended:
            return None
        await self.join(access.joins)
        await self.look(access)
        return access

    def watched_page(self) -> WatchedPage:
        session = self.scope.get("session")
        subjects = frozenset(self.watching | ({f"gate:{self.looking}"} if self.looking else set()))
        return WatchedPage(session.session_key if session is not None else None, subjects)

    async def look(self, access: Access | None) -> None:
        """Record whether this person has a gate in sight, if they may see it, and tell others who have."""
        gate = self.looking if access is not None and f"gate.{self.looking}" in access.watched else 0
        before, self.noted = self.noted, gate  # before the await: a disconnect meanwhile has to undo it too
        if access is not None and gate:
            new, self.visited = (gate, self.proposal) != (before, self.visited), self.proposal
            await database_sync_to_async(channel_layer.look)(
                self.channel_name, gate, by=access.user, proposal=self.proposal if new else 0
            )
        elif before:
            await database_sync_to_async(channel_layer.away)(self.channel_name)

    async def join(self, wanted: Set[str]) -> None:
        for group in self.groups_joined - wanted:
            await self.channel_layer.group_discard(group, self.channel_name)
        for group in wanted - self.groups_joined:
            await self.channel_layer.group_add(group, self.channel_name)
        self.groups_joined = set(wanted)

    async def keep_beating(self) -> None:
        """Check access and send heartbeats, until the end. A failed check closes the socket: the page reconnects."""
        try:
            while True:
                await asyncio.sleep(self.heartbeat)
                if await self.check() is None:
                    return
                await self.send_json({"kind": "heartbeat", "cursor": str(self.cursor or "")})
        except OSError:
            return  # the browser is gone, and its disconnect follows
        except Exception:
            log.exception("socket.unchecked")
            await self.close(code=UNCHECKED)

    def asked(self, name: str) -> str:
        """Return a parameter of the socket's address; "" where it is missing."""
        query = dict(part.partition("=")[::2] for part in self.scope["query_string"].decode("latin-1").split("&"))
        return query.get(name, "")

    def asked_cursor(self) -> Cursor | None:
        """Read the cursor in ?after=; None where it is missing or junk."""
        try:
            return Cursor.parse(self.asked("after"))
        except ValueError:
            return None

    async def replay(self, cursor: Cursor) -> None:
        """Send the facts since the page was rendered. Its groups are joined by now, so none is missed.

        Access is read again with the events: this waits for other pages, and a loss meanwhile was told before it came.
        A tailer that does not know yet from where it reads would begin after what is sent here, and leave a gap.
        """
        if reading:
            await reading[-1].started.wait()
        found = await look_back((self.watched_page(), cursor))
        if found is None:
            await self.reset()
        else:
            await self.facts({"type": "facts", "group": "", "facts": found})

    async def reset(self) -> None:
        """Tell the page to reload everything."""
        self.cursor = self.known = await database_sync_to_async(newest_cursor)()
        await self.send_json({"kind": "reset", "cursor": str(self.cursor)})


async def deliver(events: list[Event]) -> None:
    """Send events to their audiences: one message per group, so that a burst does not overrun a channel.

    Requests that wait are woken first: they read the events themselves, while the titles are read for pages. Raises
    the database's errors before a page is sent anything, so that the caller may retry. Any other error is raised once
    all pages were told to start over, since it is not known which of them missed something.
    """
    layer = cast(PageLayer, get_channel_layer())
    try:
        audiences = [audience(event) for event in events]
        for group in set().union(*audiences):
            await layer.group_send(WAITING + group, {"type": "event"})
        titles = await database_sync_to_async(titles_of)(events)
        by_group: dict[str, list[Fact]] = {}
        for event, groups in zip(events, audiences, strict=True):
            fact = fact_of(event, titles)
            for group in groups:
                by_group.setdefault(group, []).append(fact)
        changed = [
            group
            for event, groups in zip(events, audiences, strict=True)
            if event.kind in OF_ACCESS
            for group in groups
        ]
        for group in dict.fromkeys([*changed, *by_group]):  # who may hear less now is told first
            await layer.group_send(group, {"type": "facts", "group": group, "facts": by_group[group]})
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        layer.overrun()
        raise
    await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def reading_along() -> AsyncIterator[None]:
    """Run this process's tailer and its listener for `ephemeral` messages, as long as the server runs."""
    tailer = Tailer(deliver)
    tasks = [asyncio.create_task(tailer.run()), asyncio.create_task(channel_layer.tell())]
    reading.append(tailer)
    try:
        yield
    finally:
        reading.remove(tailer)
        await asyncio.gather(*map(end_task, tasks))


consumer: Any = LiveConsumer.as_asgi()  # path() is typed for views only
websocket_urlpatterns = [path("ws/", consumer)]
