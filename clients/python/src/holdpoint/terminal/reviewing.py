"""A reviewer's requests to the server, as operations: drivers call them in a command, and await them in the inbox."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

from ..exchange import Op, Request
from ..sending import Api, encode_body

Json = dict[str, Any]
MOST = 1000  # gates or runs that are listed
PAGE = 200
WAIT = 25.0  # seconds for which one request waits for events


def gates(api: Api) -> Op[list[Json]]:
    """List the open gates, the longest open first."""
    return (yield from _listed(api, "gates"))


def gate(api: Api, number: int) -> Op[Json]:
    """Read a gate."""
    found: Json = yield from _read(api, f"gates/{number}")
    return found


def choices(api: Api, number: int) -> Op[list[Json]]:
    """Return what each choice at a gate would do."""
    found: Json = yield from _read(api, f"gates/{number}/impacts")
    items: list[Json] = found["items"]
    return items


def preview(api: Api, number: int, decision: Mapping[str, Any]) -> Op[Json]:
    """Return what a decision would do. Nothing is recorded."""
    found: Json = yield from _sent(api, f"gates/{number}/impacts", decision)
    return found


def decide(api: Api, number: int, decision: Mapping[str, Any], *, key: str = "") -> Op[Json]:
    """Record a decision, once for a key."""
    found: Json = yield from _sent(api, f"gates/{number}/decisions", decision, key=key or uuid.uuid4().hex)
    return found


def undo(api: Api, number: int) -> Op[Json]:
    """Take your decision back while its gate is still open."""
    found: Json = yield from _sent(api, f"gates/{number}/undos", {}, key=uuid.uuid4().hex)
    return found


def runs(api: Api, *, status: str = "") -> Op[list[Json]]:
    """List the newest runs."""
    found: Json = yield from _read(api, "runs", limit=str(PAGE), **({"status": status} if status else {}))
    items: list[Json] = found["items"]
    return items


def run(api: Api, number: int) -> Op[Json]:
    """Read a run."""
    found: Json = yield from _read(api, f"runs/{number}")
    return found


def checkpoints(api: Api, number: int) -> Op[list[Json]]:
    """List a run's checkpoints, the newest first."""
    return (yield from _listed(api, f"runs/{number}/checkpoints"))


def state(api: Api, number: int, seq: int) -> Op[Json]:
    """Return the state of a checkpoint."""
    found: Json = yield from _read(api, f"runs/{number}/checkpoints/{seq}")
    saved: Json = found["state"]
    return saved


def rewind_impact(api: Api, number: int, to: int, feedback: str = "") -> Op[Json]:
    """Return what a rewind would do. Nothing is written."""
    body = {"kind": "rewind", "at": to, "feedback": feedback}
    found: Json = yield from _sent(api, f"runs/{number}/impacts", body)
    return found


def rewind(api: Api, number: int, order: Mapping[str, Any]) -> Op[Json]:
    """Rewind a run: exactly as `seen` was previewed, or not at all."""
    found: Json = yield from _sent(api, f"runs/{number}/rewinds", order, key=uuid.uuid4().hex)
    return found


def events(api: Api, after: str, *, subject: str = "", wait: float = WAIT) -> Op[Json]:
    """Return the events after a cursor, or none after `wait` seconds."""
    asked = {"after": after, "wait": f"{wait:g}", **({"subject": subject} if subject else {})}
    found: Json = yield from api.sent(Request("GET", "events", asked, timeout=30.0 + wait))
    return found


def _listed(api: Api, path: str) -> Op[list[Json]]:
    found: list[Json] = []
    cursor = ""
    while True:
        page: Json = yield from _read(api, path, limit=str(PAGE), **({"cursor": cursor} if cursor else {}))
        found += page["items"]
        cursor = page["next"] or ""
        if not cursor or len(found) >= MOST:
            return found


def _read(api: Api, path: str, **query: str) -> Op[Any]:
    return (yield from api.sent(Request("GET", path, query)))


def _sent(api: Api, path: str, body: Mapping[str, Any], *, key: str = "") -> Op[Any]:
    return (yield from api.sent(Request("POST", path, body=encode_body(body), key=key)))
