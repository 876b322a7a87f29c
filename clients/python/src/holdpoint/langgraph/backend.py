"""The place that keeps threads, by its operations, as JSON: one backend is a server's own process, one the HTTP API."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from holdpoint.sending import Request

from ..client import Holdpoint
from ..errors import Problem
from . import saver_errors
from .values import JSON

# What becomes of a field: its new value; the items at the end of its list; or nothing any more.
Change = tuple[Literal["set", "append", "drop"], JSON]
# What the program knows of a thread: it is handed back with the next put. None: it goes on from the parent that it
# names, whatever has been put since.
Seen = Any
PAGE = 50  # checkpoints that are read at once
LONG = 60.0  # seconds for an answer with states
P = TypeVar("P")


class Write(NamedTuple):
    """A pending write, as it is read."""

    task: str
    channel: str
    value: JSON


@dataclass(frozen=True)
class Stored:
    """A checkpoint, as it is read. `edited`: a person changed these fields after the graph saved them."""

    thread: str
    namespace: str
    id: str
    parent: str | None
    fields: Mapping[str, JSON]
    writes: Sequence[Write] = ()
    edited: Sequence[str] = ()


@dataclass(frozen=True)
class New:
    """A checkpoint to put. `whole`: the changes set the whole state, else they change the parent's.

    `invocation`: the `run_id` that LangGraph gave to the invocation, if any.
    """

    id: str
    parent: str | None
    changes: Mapping[str, Change]
    whole: bool = False
    invocation: str = ""


@dataclass(frozen=True)
class ChannelHistory:
    """A channel's writes on the path to a checkpoint, oldest first, and its stored value before them, if any."""

    writes: Sequence[Write]
    stored: bool = False
    value: JSON = None


class Backend(Protocol):
    """A place that keeps threads."""

    def get(self, thread: str, namespace: str, id: str | None) -> tuple[Stored | None, Seen]:
        """Return the newest checkpoint, or the one with this id."""

    def listed(
        self,
        thread: str | None,
        namespace: str | None,
        *,
        before: str | None = None,
        limit: int | None = None,
        only: Mapping[str, JSON] | None = None,
    ) -> Iterator[Stored]:
        """Yield checkpoints, the newest first; `only`: what their metadata hold."""

    def put(self, thread: str, namespace: str, new: New, seen: Seen) -> Seen:
        """Save a checkpoint; return what the program knows then."""

    def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[tuple[int, str, JSON]], task: str, path: str
    ) -> None:
        """Keep a task's writes at a checkpoint, each as (LangGraph's number, channel, value)."""

    def history(
        self, thread: str, namespace: str, id: str, channels: Mapping[str, str]
    ) -> Mapping[str, ChannelHistory]:
        """Return the histories of channels, given with their fields' names."""

    def delete(self, thread: str) -> None:
        """Remove a thread's checkpoints."""

    def delete_for_runs(self, invocations: Sequence[str]) -> None:
        """Remove the checkpoints of invocations."""

    def copy(self, thread: str, to: str) -> None:
        """Copy a thread's checkpoints and writes."""

    def prune(self, thread: str) -> None:
        """Keep the newest checkpoint of each namespace, and what it is rebuilt from."""

    def close(self) -> None:
        """Close its connections."""


def read_pages(
    read: Callable[[P | None, int], tuple[Sequence[Stored], P | None]], limit: int | None
) -> Iterator[Stored]:
    """Yield `limit` checkpoints of a list, or all; a page is read when it is needed.

    `read`: returns at most so many from a place on, None at first, and where the list goes on, None at its end.
    """
    place = None
    while limit is None or limit > 0:
        page, place = read(place, PAGE if limit is None else min(limit, PAGE))
        yield from page
        if place is None:
            return
        limit = None if limit is None else limit - len(page)


class HttpBackend:
    """Keeps the threads of the agent whose token it is. Address and token from the environment unless given."""

    def __init__(self, url: str = "", token: str = "", *, agent: str = "", team: str = "") -> None:
        self._client = Holdpoint(url, token)
        self._owner = {name: value for name, value in (("agent", agent), ("team", team)) if value}

    def get(self, thread: str, namespace: str, id: str | None) -> tuple[Stored | None, Seen]:
        asked = {"thread": thread, "namespace": namespace} | ({"id": id} if id is not None else {})
        answer = self._read("threads/checkpoint", asked)
        return (_stored(answer["found"]) if answer["found"] else None), answer["seen"]

    def listed(
        self,
        thread: str | None,
        namespace: str | None,
        *,
        before: str | None = None,
        limit: int | None = None,
        only: Mapping[str, JSON] | None = None,
    ) -> Iterator[Stored]:
        asked = {"before": before or "", "only": json.dumps(only) if only else ""}
        asked |= {name: value for name, value in (("thread", thread), ("namespace", namespace)) if value is not None}

        def read(cursor: str | None, most: int) -> tuple[list[Stored], str | None]:
            page = self._read("threads/checkpoints", {**asked, "cursor": cursor or "", "limit": str(most)})
            return [_stored(item) for item in page["items"]], page["next"]

        return read_pages(read, limit)

    def put(self, thread: str, namespace: str, new: New, seen: Seen) -> Seen:
        """Save a checkpoint. Sent twice it is saved once: its id is the key."""
        body: dict[str, Any] = {
            "thread": thread, "namespace": namespace, "id": new.id, "parent": new.parent, "whole": new.whole,
            "invocation": new.invocation, "seen": seen, "set": {}, "append": {},
        }  # fmt: skip
        body["drop"] = [name for name, (verb, _) in new.changes.items() if verb == "drop"]
        for name, (verb, value) in new.changes.items():
            if verb != "drop":
                body[verb][name] = value
        return self._write("threads/checkpoints", body)["seen"]

    def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[tuple[int, str, JSON]], task: str, path: str
    ) -> None:
        shown = [{"number": number, "channel": channel, "value": value} for number, channel, value in writes]
        body = {"thread": thread, "namespace": namespace, "id": id, "writes": shown, "task": task, "path": path}
        self._write("threads/writes", body)

    def history(
        self, thread: str, namespace: str, id: str, channels: Mapping[str, str]
    ) -> Mapping[str, ChannelHistory]:
        asked = {"thread": thread, "namespace": namespace, "id": id, "channels": json.dumps(dict(channels))}
        found = self._read("threads/histories", asked)["channels"]
        return {
            name: ChannelHistory(_writes(history["writes"]), history["stored"], history["value"])
            for name, history in found.items()
        }

    def delete(self, thread: str) -> None:
        self._write("threads/deletions", {"thread": thread})

    def delete_for_runs(self, invocations: Sequence[str]) -> None:
        self._write("threads/deletions", {"invocations": list(invocations)})

    def copy(self, thread: str, to: str) -> None:
        """Copy a thread. A retry under the same key copies it once."""
        self._write("threads/copies", {"thread": thread, "to": to}, key=uuid.uuid4().hex)

    def prune(self, thread: str) -> None:
        self._write("threads/prunes", {"thread": thread})

    def close(self) -> None:
        self._client.close()

    def _read(self, path: str, asked: Mapping[str, str]) -> Any:
        return self._sent(Request("GET", path, {**self._owner, **asked}, timeout=LONG))

    def _write(self, path: str, body: Mapping[str, Any], *, key: str = "") -> Any:
        sent = json.dumps({**self._owner, **body}, allow_nan=False).encode()
        return self._sent(Request("POST", path, body=sent, key=key, timeout=LONG))

    def _sent(self, request: Request) -> Any:
        client = self._client
        try:
            return client._io.run(client._api.sent(request))
        except Problem as problem:
            if refusal := saver_errors.REFUSALS.get(problem.code):
                raise refusal(problem.detail) from problem
            if problem.status in (400, 413, 422):
                refusal = saver_errors.Unsaveable if request.method == "POST" else saver_errors.SaverError
                raise refusal(str(problem)) from problem
            raise
        except UnicodeEncodeError as error:
            raise saver_errors.SaverError(f"A thread_id has no lone surrogates ({error}). Use another.") from error


def _stored(checkpoint: Mapping[str, Any]) -> Stored:
    return Stored(
        checkpoint["thread"], checkpoint["namespace"], checkpoint["id"], checkpoint["parent"], checkpoint["fields"],
        _writes(checkpoint["writes"]), checkpoint["edited"],
    )  # fmt: skip


def _writes(rows: Sequence[Mapping[str, Any]]) -> list[Write]:
    return [Write(row["task"], row["channel"], row["value"]) for row in rows]
