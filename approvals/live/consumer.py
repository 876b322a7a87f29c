"""The live socket: facts, never content.

One tailer per web process reads events and hands each to the groups of people who may know of it; who that is
is decided here, once per event (`audience`). A browser that receives a fact fetches the part of its page that
the fact is about through the ordinary address, where permission is checked again.

server -> {"cursor", "kind", "subject", "run", "version", "title"}; {"kind": "heartbeat", "cursor"};
          {"kind": "reset", "cursor"} where too much happened to say it singly
          {"kind": "gate.looking", "subject": "looking:42"} where somebody came to a gate's page or left it
          {"kind": "run.spoke", "subject": "spoken:7"} where a running step says more (agents.steps.progress)
client -> {"ping": true}, which a heartbeat answers at once
          {"watch": ["run:7", "gate:42"], "looking": 42}; no "looking" while the page is out of sight
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Set
from typing import Any, TypedDict, cast

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from channels.layers import get_channel_layer
from django.db import InterfaceError, OperationalError
from django.urls import path
from structlog import get_logger

from checkpoints.events.commit_order import Cursor, newest
from checkpoints.events.tailer import Tailer, end
from checkpoints.models import Event

from . import ephemeral, presence
from .access import Access, WatchedPage, accesses
from .batched_questions import Batched
from .channel_layer import PageLayer
from .facts import Fact, audience, fact_of
from .frame_rate import FrameRate
from .replay import missed, titles_of

REVOKED = 4401
UNCHECKED = 1011  # RFC 6455: the server met what it cannot go on from
TOO_MANY = 1008  # RFC 6455: a message that the server's policy does not take
TOO_LARGE = 1009  # RFC 6455: a message that is too big to be read
LARGEST = 32 * 1024  # characters of a frame, many times what a page sends
WATCHED = 50  # subjects one page may watch
log = get_logger()
check_access = Batched(accesses)
look_back = Batched(missed)


class Message(TypedDict):
    """What the tailer puts into a group."""

    type: str
    facts: list[Fact]


class LiveConsumer(AsyncJsonWebsocketConsumer):
    """One open page."""

    heartbeat = 15.0  # seconds; access is checked again at each
    ended = False  # closed from here; what is on its way yet comes after the end
    groups_joined: Set[str] = frozenset()
    beat: asyncio.Task[None] | None = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the page, and leave nothing of it behind even where a message fails: no disconnect comes then."""
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
        self.looking = self.noted = 0  # the gate in sight, and the one that the others know of; 0: none
        self.cursor = self.drawn_at = self.asked_cursor()
        access = await self.check()
        if access is None:
            return
        if self.cursor is not None:
            await self.replay(access, self.cursor)
        self.beat = asyncio.create_task(self.keep_beating())

    async def disconnect(self, code: int) -> None:
        if self.beat:
            self.beat.cancel()
        self.looking = 0
        await self.look(None)

    async def close(self, code: int | None = None, reason: str | None = None) -> None:
        """Close the socket, once, and hear nothing more: the browser may go late or never."""
        if not self.ended:
            self.ended = True
            await self.join(set())
            await super().close(code=code, reason=reason)

    async def dispatch(self, message: dict[str, Any]) -> None:
        """Handle facts directly. Before others, Channels drops stale database connections in a thread."""
        if self.ended and message["type"] != "websocket.disconnect":
            return
        if message["type"] == "facts":
            await self.facts(cast(Message, message))
        else:
            await super().dispatch(message)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None, **kwargs: Any) -> None:
        """Take a frame of JSON; any other says nothing, and costs its sender nothing but the frame.

        Whoever sends far more than a page does is closed: each frame that asks for something new costs a look at
        their access, and each of the others the reading of it.
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
        said = set(asked[:WATCHED]), looking
        if said == (self.watching, self.looking) and self.drawn_at is None:
            return  # nothing new is asked, and access is looked at by every heartbeat
        new = said[0] - self.watching
        self.watching, self.looking = said
        heard = self.groups_joined
        access = await self.check()
        # What a page shows is watched a moment after the page was drawn; what only watchers hear may lie between.
        since, self.drawn_at = self.drawn_at or self.cursor, None
        if access is not None and since is not None and self.groups_joined - heard:
            await self.replay(access, since)
        # What a step reported between the drawing and now was not sent here, and it may report nothing more for long.
        runs = access.watched if access is not None else frozenset()
        for kind, _, run in (subject.partition(":") for subject in new):
            if kind == ephemeral.SPOKEN and f"run.{run}" in runs:
                await self.spoke({"number": run})

    async def facts(self, message: Message) -> None:
        """Send facts from the tailer; one that came through two groups is sent once."""
        for fact in message["facts"]:
            if fact["cursor"] not in self.told:
                self.told.append(fact["cursor"])
                self.cursor = Cursor.parse(fact["cursor"])
                await self.send_json(fact)

    async def overrun(self, message: dict[str, Any]) -> None:
        """Start over from what is newest now: more was sent than this page took."""
        await self.reset()

    async def looked(self, message: dict[str, Any]) -> None:
        """Tell the page that somebody came to a gate that it shows, or left it."""
        await self.send_json({"kind": "gate.looking", "subject": f"looking:{message['number']}"})

    async def spoke(self, message: dict[str, Any]) -> None:
        """Tell the page that the step under way in a run that it shows reports more than before."""
        await self.send_json({"kind": "run.spoke", "subject": f"spoken:{message['number']}"})

    async def check(self) -> Access | None:
        """Read what this person may hear now, and listen to that; None where the session has ended."""
        session = self.scope.get("session")
        subjects = frozenset(self.watching | ({f"gate:{self.looking}"} if self.looking else set()))
        access = await check_access(WatchedPage(session.session_key if session is not None else None, subjects))
        if access is None:
            await self.close(code=REVOKED)
        if access is None or self.ended:
            return None
        await self.join(access.groups | access.watched)
        await self.look(access)
        return access

    async def look(self, access: Access | None) -> None:
        """Tell those who look at a gate whether this person has it in sight, if they may see it."""
        gate = self.looking if access is not None and f"gate.{self.looking}" in access.watched else 0
        before, self.noted = self.noted, gate  # at once: who goes meanwhile must be taken back too
        if access is not None and gate:
            await database_sync_to_async(presence.look)(self.channel_name, gate, by=access.user)
        elif before:
            await database_sync_to_async(presence.away)(self.channel_name)

    async def join(self, wanted: Set[str]) -> None:
        for group in self.groups_joined - wanted:
            await self.channel_layer.group_discard(group, self.channel_name)
        for group in wanted - self.groups_joined:
            await self.channel_layer.group_add(group, self.channel_name)
        self.groups_joined = set(wanted)

    async def keep_beating(self) -> None:
        """Check access and say so, until the end. A check that fails closes the socket: the page comes again."""
        try:
            while True:
                await asyncio.sleep(self.heartbeat)
                if await self.check() is None:
                    return
                await self.send_json({"kind": "heartbeat", "cursor": str(self.cursor or "")})
        except OSError:
            return  # the browser is gone, and its disconnect is on the way
        except Exception:
            log.exception("socket.unchecked")
            await self.close(code=UNCHECKED)

    def asked_cursor(self) -> Cursor | None:
        """Read the cursor in ?after=; None where it is missing or junk."""
        query = dict(part.partition("=")[::2] for part in self.scope["query_string"].decode("latin-1").split("&"))
        try:
            return Cursor.parse(query.get("after", ""))
        except ValueError:
            return None

    async def replay(self, access: Access, cursor: Cursor) -> None:
        """Say what happened since the page was rendered. Groups are joined by now, so nothing falls between."""
        found = await look_back((access, cursor))
        if found is None:
            await self.reset()
        else:
            await self.facts({"type": "facts", "facts": found})

    async def reset(self) -> None:
        """Say that the page is to be drawn anew."""
        self.cursor = await database_sync_to_async(newest)()
        await self.send_json({"kind": "reset", "cursor": str(self.cursor)})


async def deliver(events: list[Event]) -> None:
    """Hand events to their audiences: one message per group, so that a burst does not overrun a channel.

    Raises the database's errors before anything is told: the same may be handed on again. Any other fault is raised
    once all pages were told to start over, since which of them lack something is not known then.
    """
    layer = cast(PageLayer, get_channel_layer())
    try:
        titles = await database_sync_to_async(titles_of)(events)
        by_group: dict[str, list[Fact]] = {}
        for event in events:
            for group in audience(event):
                by_group.setdefault(group, []).append(fact_of(event, titles))
        for group, facts in by_group.items():
            await layer.group_send(group, {"type": "facts", "facts": facts})
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        layer.overrun()
        raise
    await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def reading_along() -> AsyncIterator[None]:
    """Run the one tailer of this process, and what tells of the rest, as long as the server runs."""
    tasks = [asyncio.create_task(Tailer(deliver).run()), asyncio.create_task(ephemeral.tell())]
    try:
        yield
    finally:
        await asyncio.gather(*map(end, tasks))


consumer: Any = LiveConsumer.as_asgi()  # path() is typed for views only
websocket_urlpatterns = [path("ws/", consumer)]
