"""The backend over the HTTP API: the same operations, for a program on another machine."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..client import Holdpoint
from ..errors import Problem
from ..sending import Request
from . import errors
from .backend import ChannelHistory, New, Seen, Stored, Write, read_pages
from .values import JSON

_LONG = 60.0  # seconds for an answer with states


class HttpBackend:
    """Keeps the threads of the agent whose token it is. Address and token from the environment unless given."""

    def __init__(self, url: str = "", token: str = "", *, agent: str = "", team: str = "") -> None:
        self._client = Holdpoint(url, token)
        self._owner = {name: value for name, value in (("agent", agent), ("team", team)) if value}

    def get(self, thread: str, namespace: str, id: str | None) -> tuple[Stored | None, Seen]:
        """Return the newest checkpoint, or the one with this id."""
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
        """Yield checkpoints, the newest first."""
        asked = {"before": before or "", "only": json.dumps(only) if only else ""}
        asked |= {name: value for name, value in (("thread", thread), ("namespace", namespace)) if value is not None}

        def read(cursor: str | None, most: int) -> tuple[list[Stored], str | None]:
            page = self._read("threads/checkpoints", {**asked, "cursor": cursor or "", "limit": str(most)})
            return [_stored(item) for item in page["items"]], page["next"]

        return read_pages(read, limit)

    def put(self, thread: str, namespace: str, new: New, seen: Seen) -> Seen:
        """Save a checkpoint. Sent twice it is saved once: its id is the key."""
        changes: dict[str, Any] = {"set": {}, "append": {}, "drop": []}
        for name, (verb, value) in new.changes.items():
            if verb == "drop":
                changes["drop"].append(name)
            else:
                changes[verb][name] = value
        body = {
            "thread": thread, "namespace": namespace, "id": new.id, "parent": new.parent, "whole": new.whole,
            "invocation": new.invocation, "seen": seen, **changes,
        }  # fmt: skip
        return self._write("threads/checkpoints", body)["seen"]

    def put_writes(
        self, thread: str, namespace: str, id: str, writes: Sequence[tuple[int, str, JSON]], task: str, path: str
    ) -> None:
        """Keep a task's writes at a checkpoint."""
        shown = [{"number": number, "channel": channel, "value": value} for number, channel, value in writes]
        body = {"thread": thread, "namespace": namespace, "id": id, "writes": shown, "task": task, "path": path}
        self._write("threads/writes", body)

    def history(
        self, thread: str, namespace: str, id: str, channels: Mapping[str, str]
    ) -> Mapping[str, ChannelHistory]:
        """Return the histories of channels."""
        asked = {"thread": thread, "namespace": namespace, "id": id, "channels": json.dumps(dict(channels))}
        found = self._read("threads/histories", asked)["channels"]
        return {
            name: ChannelHistory(_writes(history["writes"]), history["stored"], history["value"])
            for name, history in found.items()
        }

    def delete(self, thread: str) -> None:
        """Remove a thread's checkpoints."""
        self._write("threads/deletions", {"thread": thread})

    def delete_for_runs(self, invocations: Sequence[str]) -> None:
        """Remove the checkpoints of invocations."""
        self._write("threads/deletions", {"invocations": list(invocations)})

    def copy(self, thread: str, to: str) -> None:
        """Copy a thread. A retry under the same key copies it once."""
        self._write("threads/copies", {"thread": thread, "to": to}, key=uuid.uuid4().hex)

    def prune(self, thread: str) -> None:
        """Keep the newest checkpoint of each namespace, and what it is rebuilt from."""
        self._write("threads/prunes", {"thread": thread})

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def _read(self, path: str, asked: Mapping[str, str]) -> Any:
        return self._sent(Request("GET", path, {**self._owner, **asked}, timeout=_LONG))

    def _write(self, path: str, body: Mapping[str, Any], *, key: str = "") -> Any:
        sent = json.dumps({**self._owner, **body}, allow_nan=False).encode()
        return self._sent(Request("POST", path, body=sent, key=key, timeout=_LONG))

    def _sent(self, request: Request) -> Any:
        client = self._client
        try:
            return client._io.run(client._api.sent(request))
        except Problem as problem:
            if refusal := errors.REFUSALS.get(problem.code):
                raise refusal(problem.detail) from problem
            if problem.status in (400, 413, 422):
                refusal = errors.Unsaveable if request.method == "POST" else errors.SaverError
                raise refusal(str(problem)) from problem
            raise
        except UnicodeEncodeError as error:
            raise errors.SaverError(f"A thread_id has no lone surrogates ({error}). Use another.") from error


def _stored(checkpoint: Mapping[str, Any]) -> Stored:
    return Stored(
        checkpoint["thread"], checkpoint["namespace"], checkpoint["id"], checkpoint["parent"], checkpoint["fields"],
        _writes(checkpoint["writes"]), checkpoint["edited"],
    )  # fmt: skip


def _writes(rows: Sequence[Mapping[str, Any]]) -> list[Write]:
    return [Write(row["task"], row["channel"], row["value"]) for row in rows]
