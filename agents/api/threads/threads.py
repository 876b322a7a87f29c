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

from agents.access import reader_of
from agents.api.programs.starting import agent_of, team_of
from agents.api.protocol import ApiSchema, Key, actor_of, do_once, require_scope
from agents.api.protocol.exact_json import of_state
from agents.errors import FieldError
from agents.models import TokenScope
from agents.threads import copying, history, reading, removing, saving
from agents.threads.pending import Write
from agents.threads.places import Owner, Place
from agents.threads.reading import Found, ListPlace
from agents.threads.saving import NewCheckpoint, Seen
from agents.work_errors import WorkInvalid
from checkpoints.access.permissions import START_RUN, VIEW_RUN
from checkpoints.errors import ValueRefused
from checkpoints.values.canonical_json import encode_canonical, parse_json
from checkpoints.values.ops import DROP, Append

from . import bodies
from .bodies import AGENT, ID, NAMESPACE, TEAM, THREAD

router = Router(tags=["threads"])
SCOPE = require_scope(TokenScope.WORK)
MOST = 200
WRONG_CURSOR = "must be the `next` of the page before"


class Asked(ApiSchema):
    """The agent whose threads are read."""

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
    """What their metadata hold, as a JSON object."""  # fmt: skip
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
    """The channels with their fields, as a JSON object."""  # fmt: skip


@router.get("/checkpoint", auth=SCOPE, response=bodies.ReadThread, summary="Read a checkpoint of a thread")
def get_thread_checkpoint(request: HttpRequest, asked: Query[AskedCheckpoint]) -> HttpResponse:
    """Return the thread's newest checkpoint, or the one with this id, verified, with its pending writes."""
    found, seen = reading.get(_owner(request, asked), Place(asked.thread, asked.namespace), asked.id or None)
    return _json({"found": _encode_checkpoint(found) if found else b"null", "seen": _plain(_known(seen))})


@router.get("/checkpoints", auth=SCOPE, response=bodies.CheckpointList, summary="List the checkpoints of threads")
def list_thread_checkpoints(request: HttpRequest, asked: Query[AskedList]) -> HttpResponse:
    """List the checkpoints of a thread, or of all threads of the agent, the newest first.

    A page with `only` may have fewer than `limit`, or none: read on by its `next`, which is null at the end.
    """
    found, last = reading.page(
        _owner(request, asked), asked.thread or None, asked.namespace, before=asked.before or None,
        below=_cursor(asked.cursor), limit=asked.limit, only=_object(asked.only, "only"),
    )  # fmt: skip
    items = b"[%b]" % b",".join(map(_encode_checkpoint, found))
    return _json({"items": items, "next": _plain(_shown(last) if last else None)})


@router.get("/histories", auth=SCOPE, response=bodies.ReadHistories, summary="Read what DeltaChannels are rebuilt from")
def get_thread_histories(request: HttpRequest, asked: Query[AskedHistory]) -> HttpResponse:
    """Return the writes to channels on the path to a checkpoint, back to each channel's last stored value."""
    channels = {name: str(field) for name, field in (_object(asked.channels, "channels") or {}).items()}
    if len(channels) > MOST:
        raise _fault("/channels", f"name at most {MOST} channels")
    found = history.read_histories(_owner(request, asked), Place(asked.thread, asked.namespace), asked.id, channels)
    histories = {
        name: _members({"writes": _writes(past.writes), "stored": _plain(past.stored is not None),
                        "value": _value(past.value)})
        for name, past in found.items()
    }  # fmt: skip
    return _json({"channels": _members(histories)})


@router.post("/checkpoints", auth=SCOPE, response={201: bodies.Saved}, summary="Save a checkpoint of a thread")
def put_thread_checkpoint(request: HttpRequest, order: bodies.PutCheckpoint, key: Key) -> HttpResponse:
    """Save a checkpoint of a graph. The same one sent again is saved once: its id is its key."""
    fields: dict[str, Any] = {**order.set, **{name: Append(items) for name, items in order.append.items()}}
    fields |= dict.fromkeys(order.drop, DROP)
    new = NewCheckpoint(order.id, order.parent, fields, order.whole, order.invocation)
    seen = None if order.seen is None else _seen(order.seen)
    place = Place(order.thread, order.namespace)
    return _fill(request, order, key, lambda owner: saving.put(owner, place, new, seen), at="/set")


@router.post("/writes", auth=SCOPE, response={201: bodies.ThreadDone}, summary="Keep the pending writes of a task")
def put_thread_writes(request: HttpRequest, order: bodies.PutWrites, key: Key) -> HttpResponse:
    """Keep what a task wrote at a checkpoint, before the next one is saved. The same sent again is kept once."""
    writes = [(write.number, write.channel, write.value) for write in order.writes]
    place = Place(order.thread, order.namespace)
    put = partial(saving.put_writes, place=place, id=order.id, writes=writes, task=order.task, path=order.path)
    return _fill(request, order, key, put, at="/writes")


@router.post("/deletions", auth=SCOPE, response={201: bodies.ThreadDone}, summary="Remove checkpoints of threads")
def delete_thread_checkpoints(request: HttpRequest, order: bodies.Deletion, key: Key) -> HttpResponse:
    """Remove a thread's checkpoints, or those that invocations saved. What a hold protects is refused."""
    if bool(order.thread) == bool(order.invocations):
        raise WorkInvalid([FieldError(pointer="/thread", message="name a thread, or invocations: one of the two")])
    if order.thread:
        return _fill(request, order, key, lambda owner: removing.delete(owner, order.thread))
    return _fill(request, order, key, lambda owner: removing.delete_invocations(owner, order.invocations))


@router.post("/copies", auth=SCOPE, response={201: bodies.ThreadDone}, summary="Copy a thread")
def copy_thread(request: HttpRequest, order: bodies.ThreadCopy, key: Key) -> HttpResponse:
    """Copy a thread with all namespaces, checkpoints and writes to a new one."""
    return _fill(request, order, key, lambda owner: copying.copy(owner, order.thread, order.to))


@router.post("/prunes", auth=SCOPE, response={201: bodies.ThreadDone}, summary="Prune a thread")
def prune_thread(request: HttpRequest, order: bodies.ThreadPrune, key: Key) -> HttpResponse:
    """Keep the newest checkpoint of each namespace and what its DeltaChannels are rebuilt from; remove the rest."""
    return _fill(request, order, key, lambda owner: removing.prune(owner, order.thread))


def _fill(
    request: HttpRequest, order: bodies.ThreadOrder, key: str, do: Callable[[Owner], Seen | None], at: str = ""
) -> HttpResponse:
    """Fill an order, once for its key. `at`: where a put has its values; without a key it commits by itself."""
    owner = _owner(request, order)

    def answer() -> HttpResponse:
        try:
            seen = do(owner)
        except ValueRefused as error:
            if not at:
                raise
            raise _fault(f"{at}{error.pointer}", error.reason) from error
        return _json({"seen": _plain(_known(seen))} if seen else {"done": b"true"}, 201)

    return answer() if at and not key else do_once(request, key, answer)


def _owner(request: HttpRequest, asked: Asked | bodies.ThreadOrder) -> Owner:
    by, permission = actor_of(request), VIEW_RUN if isinstance(asked, Asked) else START_RUN
    team, agent = team_of(request, asked.team, permission), agent_of(request, asked.agent)
    return Owner(team, agent, by, reader_of(request), by.name)


def _seen(known: bodies.Known) -> Seen:
    token, head = known
    try:
        return Seen(token, UUID(head) if head else None)
    except ValueError as error:
        raise _fault("/seen", "must be as it was answered: the token and the head's id") from error


def _known(seen: Seen) -> bodies.Known:
    return seen.token, str(seen.head) if seen.head else None


def _cursor(given: str) -> ListPlace | None:
    if not given:
        return None
    try:
        at, run, seq = given.split("~")
        place = ListPlace(datetime.fromisoformat(at), int(run), int(seq))
    except ValueError as error:
        raise _fault("/cursor", WRONG_CURSOR) from error
    if max(place.run_id, place.seq) >= 2**63:
        raise _fault("/cursor", WRONG_CURSOR)
    return place


def _shown(cursor: ListPlace) -> str:
    return f"{cursor.at.isoformat()}~{cursor.run_id}~{cursor.seq}"


def _object(given: str, name: str) -> dict[str, Any] | None:
    try:
        found = parse_json(given) if given else None
    except ValueRefused as error:
        raise _fault(f"/{name}", error.reason) from error
    if found is not None and not isinstance(found, dict):
        raise _fault(f"/{name}", "must be a JSON object")
    return found


def _fault(pointer: str, message: str) -> WorkInvalid:
    return WorkInvalid([FieldError(pointer=pointer, message=message)])


def _encode_checkpoint(checkpoint: Found) -> bytes:
    return _members({
        "thread": _plain(checkpoint.thread), "namespace": _plain(checkpoint.namespace), "id": _plain(checkpoint.id),
        "parent": _plain(checkpoint.parent), "fields": of_state(checkpoint.fields),
        "writes": _writes(checkpoint.writes), "edited": _plain(list(checkpoint.edited)),
    })  # fmt: skip


def _writes(writes: Sequence[Write]) -> bytes:
    rows = [
        _members({"task": _plain(write.task), "channel": _plain(write.channel), "value": encode_canonical(write.value)})
        for write in writes
    ]
    return b"[%b]" % b",".join(rows)


def _value(value: Any) -> bytes:
    """Return a field's value; a list by its items, as the store has it."""
    return of_state({"": value})[4:-1]


def _members(members: Mapping[str, bytes]) -> bytes:
    return b"{%b}" % b",".join(b"%b:%b" % (_plain(name), value) for name, value in members.items())


def _plain(value: Any) -> bytes:
    return json.dumps(value).encode()


def _json(members: Mapping[str, bytes], status: int = 200) -> HttpResponse:
    return HttpResponse(_members(members), status=status, content_type="application/json")
