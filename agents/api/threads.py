"""Addresses at which a checkpointer reads and saves the threads of an agent's graphs.

A thread's id may be any text, so it is a parameter and no part of a path. Reads need the same scope as writes: a thread
is the program's own memory. The values are the store's JSON, as holdpoint.langgraph writes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router
from pydantic import Field

from agents.api.programs.starting import AGENT, agent_of, team_of
from agents.api.protocol.answers import encode_field, encode_state
from agents.api.protocol.auth import actor_of, require_scope
from agents.api.protocol.idempotency_keys import Key, do_once
from agents.api.protocol.schemas import ApiSchema, Order
from agents.models import TokenScope
from agents.threads import orders, reading, saving
from agents.threads.pending import Write
from agents.threads.places import Owner, Place
from agents.threads.reading import Found, ListPlace
from agents.threads.saving import NewCheckpoint, Seen
from agents.work_errors import WorkInvalid
from approvals.views.access import reader_of
from checkpoints.access.permissions import START_RUN, VIEW_RUN
from checkpoints.errors import ValueRefused
from checkpoints.values.canonical_json import encode_canonical, parse_json
from checkpoints.values.ops import DROP, Append

TEAM = Field("", description="The team of the threads; empty if there is only one.", max_length=150, examples=[""])
THREAD = Field(description="The thread's id.", min_length=1, max_length=200, examples=["chat-1207"])
NAMESPACE = Field("", description="The namespace: empty for the graph itself.", max_length=2000, examples=[""])
ID = Field(
    description="The checkpoint's id, a UUID.", max_length=100, examples=["1f0b6c1e-0f5e-6b7a-8001-0a1b2c3d4e5f"]
)
PARENT = "1f0b6c1e-0f4d-6a12-8000-0a1b2c3d4e5f"
POSITION = {
    "v": 4, "ts": "2026-11-02T09:30:00+00:00", "channel_versions": {"answer": 2}, "versions_seen": {},
    "metadata": {"source": "loop", "step": 1, "parents": {}},
}  # fmt: skip
STATE = {"answer": "Paid.", "langgraph": POSITION}
Known = tuple[int, str | None]
SEEN = "What was read or answered last of this thread: the claim's token, and the head's id."
SCOPE = require_scope(TokenScope.WORK)
MOST = 200
WRONG_CURSOR = "must be the `next` of the page before"


class ThreadOrder(Order):
    """An order to the threads of an agent."""

    example: ClassVar = {"agent": "assistant"}

    agent: str = AGENT
    team: str = TEAM


class PutCheckpoint(ThreadOrder):
    """Save a checkpoint of a graph after its parent. Members that name fields change the parent's state."""

    example: ClassVar = {
        "parent": PARENT, "set": STATE, "append": {"messages": ["Pay it."]}, "drop": [], "whole": False,
        "invocation": "",
    }  # fmt: skip

    thread: str = THREAD
    namespace: str = NAMESPACE
    id: str = ID
    parent: str | None = Field(None, max_length=100)
    """The checkpoint that it follows; null: it begins the thread."""
    set: dict[str, Any] = {}
    """Fields with their new values."""
    append: dict[str, list[Any]] = {}
    """Lists with the items at their end."""
    drop: list[str] = Field([], max_length=1000)
    """Fields that the state has no more."""
    whole: bool = False
    """Whether `set` is the whole state."""
    invocation: str = Field("", max_length=200)
    """LangGraph's `run_id` of the invocation, if it has one."""
    seen: Known | None = Field(
        None, description=f"{SEEN} If it is something else by now, 409 `thread_moved`; null: whatever is there.",
        examples=[[3, PARENT]],
    )  # fmt: skip


class Saved(ApiSchema):
    """A checkpoint was saved."""

    example: ClassVar = {"seen": [3, PARENT]}

    seen: Known
    """What to send with the next one."""


class PendingWrite(Order):
    """A write of a task to a channel."""

    example: ClassVar = {"number": 0, "channel": "answer", "value": "Paid."}

    number: int = Field(ge=-100, le=10_000)
    """Its number among the task's writes; below 0 for a special channel."""
    channel: str = Field(max_length=1000)
    """The channel."""
    value: Any = None
    """The value."""


class PutWrites(ThreadOrder):
    """Keep what a task wrote before the next checkpoint is saved."""

    example: ClassVar = {"task": "6c1b8b7e", "path": "~__pregel_pull"}

    thread: str = THREAD
    namespace: str = NAMESPACE
    id: str = ID
    task: str = Field(min_length=1, max_length=200)
    """The task's id."""
    path: str = Field("", max_length=4000)
    """The task's path in its graph."""
    writes: list[PendingWrite] = Field(min_length=1, max_length=10_000)
    """The writes."""


class Deletion(ThreadOrder):
    """Remove a thread's checkpoints, or those that invocations saved."""

    example: ClassVar = {"thread": "chat-1207", "invocations": []}

    thread: str = Field("", max_length=200)
    """The thread; empty: `invocations`."""
    invocations: list[str] = Field([], max_length=1000)
    """LangGraph's `run_id`s; empty: `thread`."""


class ThreadCopy(ThreadOrder):
    """Copy a thread with its checkpoints and writes."""

    example: ClassVar = {"to": "chat-1208"}

    thread: str = THREAD
    to: str = Field(min_length=1, max_length=200)
    """The thread to copy to, without checkpoints."""


class ThreadPrune(ThreadOrder):
    """Keep the newest checkpoint of each namespace, and what it is rebuilt from."""

    thread: str = THREAD


class ThreadDone(ApiSchema):
    """It was done."""

    example: ClassVar = {"done": True}

    done: bool = True
    """Always true."""


class ReadWrite(ApiSchema):
    """A pending write."""

    example: ClassVar = {"task": "6c1b8b7e", "channel": "answer", "value": "Paid."}

    task: str
    """The task's id."""
    channel: str
    """The channel."""
    value: Any
    """The value."""


class ReadCheckpoint(ApiSchema):
    """A checkpoint of a graph."""

    example: ClassVar = {
        "thread": "chat-1207", "namespace": "", "id": PARENT, "parent": None, "fields": STATE, "edited": [],
    }  # fmt: skip

    thread: str
    """The thread's id."""
    namespace: str
    """The namespace."""
    id: str
    """The checkpoint's id."""
    parent: str | None
    """The id of its parent; null: it has none."""
    fields: dict[str, Any]
    """The state: each channel under its name, and in `langgraph` the versions and the metadata."""
    writes: list[ReadWrite]
    """The writes pending at it, in LangGraph's order."""
    edited: list[str]
    """The fields that a person has changed since the graph saved them."""


class ReadThread(ApiSchema):
    """The checkpoint that was asked for; null where there is none."""

    example: ClassVar = {"seen": [3, PARENT]}

    found: ReadCheckpoint | None
    seen: Known
    """What to send with a put that follows."""


class CheckpointList(ApiSchema):
    """Checkpoints, the newest first."""

    example: ClassVar = {"next": None}

    items: list[ReadCheckpoint]
    next: str | None
    """The `cursor` of the next page; null at the end."""


class ReadHistory(ApiSchema):
    """The writes and the value from which a DeltaChannel is rebuilt."""

    example: ClassVar = {"stored": True, "value": []}

    writes: list[ReadWrite]
    """The writes to the channel, oldest first."""
    stored: bool
    """Whether a stored value comes before them."""
    value: Any
    """That value."""


class ReadHistories(ApiSchema):
    """The histories by channel."""

    channels: dict[str, ReadHistory]


router = Router(tags=["threads"])


class Asked(ApiSchema):
    """The agent whose threads are read."""

    example: ClassVar = {"agent": "assistant"}

    agent: str = AGENT
    team: str = TEAM


class AskedCheckpoint(Asked):
    """A thread, and the checkpoint in it; the newest without an id."""

    example: ClassVar = {"id": ""}

    thread: str = THREAD
    namespace: str = NAMESPACE
    id: str = Field("", max_length=100)
    """The checkpoint's id; empty: the newest."""


class AskedList(Asked):
    """The checkpoints to list."""

    example: ClassVar = {
        "thread": "chat-1207", "namespace": "", "before": "", "only": '{"source":"loop"}', "cursor": "", "limit": 50,
    }  # fmt: skip

    thread: str = Field("", max_length=200)
    """The thread; empty: all threads."""
    namespace: str | None = Field(None, max_length=2000)
    """The namespace; without it, all."""
    before: str = Field("", max_length=100)
    """Only those before the checkpoint with this id."""
    only: str = Field("", max_length=10_000)
    """What their metadata hold, as a JSON object."""
    cursor: str = Field("", max_length=200)
    """The `next` of the previous page."""
    limit: int = Field(50, ge=1, le=MOST)
    """The largest number of items."""


class AskedHistory(Asked):
    """The channels whose histories lead to a checkpoint."""

    example: ClassVar = {"channels": '{"messages":"messages"}'}

    thread: str = THREAD
    namespace: str = NAMESPACE
    id: str = ID
    channels: str = Field(max_length=100_000)
    """The channels with their fields, as a JSON object."""


@router.get("/checkpoint", auth=SCOPE, response=ReadThread, summary="Read a checkpoint of a thread")
def get_thread_checkpoint(request: HttpRequest, asked: Query[AskedCheckpoint]) -> HttpResponse:
    """Return the thread's newest checkpoint, or the one with this id, verified, with its pending writes."""
    found, seen = reading.get(_owner(request, asked), Place(asked.thread, asked.namespace), asked.id or None)
    return _json({"found": _encode_checkpoint(found) if found else b"null", "seen": _plain(_known(seen))})


@router.get("/checkpoints", auth=SCOPE, response=CheckpointList, summary="List the checkpoints of threads")
def list_thread_checkpoints(request: HttpRequest, asked: Query[AskedList]) -> HttpResponse:
    """List the checkpoints of a thread, or of all threads of the agent, the newest first.

    A page with `only` may have fewer than `limit`, or none: read on by its `next`, which is null at the end.
    """
    found, last = reading.page(
        _owner(request, asked), asked.thread or None, asked.namespace, before=asked.before or None,
        below=_cursor(asked.cursor), limit=asked.limit, only=_object(asked.only, "only"),
    )  # fmt: skip
    items = b"[%b]" % b",".join(map(_encode_checkpoint, found))
    return _json({"items": items, "next": _plain(f"{last.at.isoformat()}~{last.run_id}~{last.seq}" if last else None)})


@router.get("/histories", auth=SCOPE, response=ReadHistories, summary="Read what DeltaChannels are rebuilt from")
def get_thread_histories(request: HttpRequest, asked: Query[AskedHistory]) -> HttpResponse:
    """Return the writes to channels on the path to a checkpoint, back to each channel's last stored value."""
    channels = {name: str(field) for name, field in (_object(asked.channels, "channels") or {}).items()}
    if len(channels) > MOST:
        raise WorkInvalid.at("/channels", f"name at most {MOST} channels")
    found = reading.read_histories(_owner(request, asked), Place(asked.thread, asked.namespace), asked.id, channels)
    histories = {
        name: _members({"writes": _writes(past.writes), "stored": _plain(past.stored is not None),
                        "value": encode_field(past.value)})
        for name, past in found.items()
    }  # fmt: skip
    return _json({"channels": _members(histories)})


@router.post("/checkpoints", auth=SCOPE, response={201: Saved}, summary="Save a checkpoint of a thread")
def put_thread_checkpoint(request: HttpRequest, order: PutCheckpoint, key: Key) -> HttpResponse:
    """Save a checkpoint of a graph. The same one sent again is saved once: its id is its key."""
    fields: dict[str, Any] = {**order.set, **{name: Append(items) for name, items in order.append.items()}}
    fields |= dict.fromkeys(order.drop, DROP)
    new = NewCheckpoint(order.id, order.parent, fields, order.whole, order.invocation)
    seen = None if order.seen is None else _seen(order.seen)
    place = Place(order.thread, order.namespace)
    return _fill(request, order, key, lambda owner: saving.put(owner, place, new, seen), at="/set")


@router.post("/writes", auth=SCOPE, response={201: ThreadDone}, summary="Keep the pending writes of a task")
def put_thread_writes(request: HttpRequest, order: PutWrites, key: Key) -> HttpResponse:
    """Keep what a task wrote at a checkpoint, before the next one is saved. The same sent again is kept once."""
    writes = [(write.number, write.channel, write.value) for write in order.writes]
    place = Place(order.thread, order.namespace)
    put = partial(saving.put_writes, place=place, id=order.id, writes=writes, task=order.task, path=order.path)
    return _fill(request, order, key, put, at="/writes")


@router.post("/deletions", auth=SCOPE, response={201: ThreadDone}, summary="Remove checkpoints of threads")
def delete_thread_checkpoints(request: HttpRequest, order: Deletion, key: Key) -> HttpResponse:
    """Remove a thread's checkpoints, or those that invocations saved. What a hold protects is refused."""
    if bool(order.thread) == bool(order.invocations):
        raise WorkInvalid.at("/thread", "name a thread, or invocations: one of the two")
    if order.thread:
        return _fill(request, order, key, lambda owner: orders.delete(owner, order.thread))
    return _fill(request, order, key, lambda owner: orders.delete_invocations(owner, order.invocations))


@router.post("/copies", auth=SCOPE, response={201: ThreadDone}, summary="Copy a thread")
def copy_thread(request: HttpRequest, order: ThreadCopy, key: Key) -> HttpResponse:
    """Copy a thread with all namespaces, checkpoints and writes to a new one."""
    return _fill(request, order, key, lambda owner: orders.copy(owner, order.thread, order.to))


@router.post("/prunes", auth=SCOPE, response={201: ThreadDone}, summary="Prune a thread")
def prune_thread(request: HttpRequest, order: ThreadPrune, key: Key) -> HttpResponse:
    """Keep the newest checkpoint of each namespace and what its DeltaChannels are rebuilt from; remove the rest."""
    return _fill(request, order, key, lambda owner: orders.prune(owner, order.thread))


def _fill(
    request: HttpRequest, order: ThreadOrder, key: str, do: Callable[[Owner], Seen | None], at: str = ""
) -> HttpResponse:
    """Fill an order, once for its key. `at`: where a put has its values; without a key it commits by itself."""
    owner = _owner(request, order)

    def answer() -> HttpResponse:
        try:
            seen = do(owner)
        except ValueRefused as error:
            if not at:
                raise
            raise WorkInvalid.at(f"{at}{error.pointer}", error.reason) from error
        return _json({"seen": _plain(_known(seen))} if seen else {"done": b"true"}, 201)

    return answer() if at and not key else do_once(request, key, answer)


def _owner(request: HttpRequest, asked: Asked | ThreadOrder) -> Owner:
    by, permission = actor_of(request), VIEW_RUN if isinstance(asked, Asked) else START_RUN
    team, agent = team_of(request, asked.team, permission), agent_of(request, asked.agent)
    return Owner(team, agent, by, reader_of(request), by.name)


def _seen(known: Known) -> Seen:
    token, head = known
    try:
        return Seen(token, UUID(head) if head else None)
    except ValueError as error:
        raise WorkInvalid.at("/seen", "must be as it was answered: the token and the head's id") from error


def _known(seen: Seen) -> Known:
    return seen.token, str(seen.head) if seen.head else None


def _cursor(given: str) -> ListPlace | None:
    if not given:
        return None
    try:
        at, run, seq = given.split("~")
        place = ListPlace(datetime.fromisoformat(at), int(run), int(seq))
    except ValueError as error:
        raise WorkInvalid.at("/cursor", WRONG_CURSOR) from error
    if max(place.run_id, place.seq) >= 2**63:
        raise WorkInvalid.at("/cursor", WRONG_CURSOR)
    return place


def _object(given: str, name: str) -> dict[str, Any] | None:
    try:
        found = parse_json(given) if given else None
    except ValueRefused as error:
        raise WorkInvalid.at(f"/{name}", error.reason) from error
    if found is not None and not isinstance(found, dict):
        raise WorkInvalid.at(f"/{name}", "must be a JSON object")
    return found


def _encode_checkpoint(checkpoint: Found) -> bytes:
    return _members({
        "thread": _plain(checkpoint.thread), "namespace": _plain(checkpoint.namespace), "id": _plain(checkpoint.id),
        "parent": _plain(checkpoint.parent), "fields": encode_state(checkpoint.fields),
        "writes": _writes(checkpoint.writes), "edited": _plain(list(checkpoint.edited)),
    })  # fmt: skip


def _writes(writes: Sequence[Write]) -> bytes:
    return b"[%b]" % b",".join(
        _members({"task": _plain(write.task), "channel": _plain(write.channel), "value": encode_canonical(write.value)})
        for write in writes
    )


def _members(members: Mapping[str, bytes]) -> bytes:
    return b"{%b}" % b",".join(b"%b:%b" % (_plain(name), value) for name, value in members.items())


def _plain(value: Any) -> bytes:
    return json.dumps(value).encode()


def _json(members: Mapping[str, bytes], status: int = 200) -> HttpResponse:
    return HttpResponse(_members(members), status=status, content_type="application/json")
