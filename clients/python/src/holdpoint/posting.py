"""What is asked of people, as the server takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from .answers import Turn
from .awaiting import Way
from .calls import Allowed
from .errors import BadAnswer
from .exchange import Op
from .plans import Risk
from .sending import Api, plain
from .signatures import Schemas


@dataclass(frozen=True)
class Posting:
    """One action that people are asked about. `key`: that of the request; the same one again is the same gate."""

    body: dict[str, Any]
    key: str = ""
    timeout: float | None = None


def asked(
    name: str,
    arguments: Mapping[str, Any] | BaseModel | None = None,
    *,
    state: Mapping[str, Any] | None = None,
    title: str = "",
    summary: str = "",
    for_whom: str = "",
    amount: str = "",
    resource: str = "",
    risk: Risk = "medium",
    reasons: Sequence[str] = (),
    pinned: Sequence[str] = (),
    schema: type[BaseModel] | Mapping[str, Any] | None = None,
    respond: bool | Mapping[str, Any] = False,
    undo: str = "",
    idempotent: bool = False,
    tool: str = "",
    policy: str = "",
    agent: str = "",
    team: str = "",
    key: str = "",
    timeout: float | None = None,
) -> Posting:
    """Ask whether `name` may be done with these arguments.

    `state` is shown beside them, `pinned` names the arguments that are shown first. `schema` describes them, as a
    model or a JSON Schema; the arguments may be a model themselves. `respond`: people may answer in its place (with
    what this JSON Schema says). `undo` names what takes it back, `idempotent` says that it may be sent twice under one
    key. `key`: the same one again asks nothing new but goes on with the first gate. `timeout`: seconds to wait for
    people; None waits for ever.
    """
    if isinstance(arguments, BaseModel):
        schema = schema or type(arguments)
    if isinstance(schema, type):
        schema = schema.model_json_schema(mode="serialization", schema_generator=Schemas)
    action: dict[str, Any] = {"id": name, "title": title, "tool": tool or name, "arguments": plain(arguments or {})}
    action |= {"pinned": [_pointer(each) for each in pinned], "undo": undo, "idempotent": idempotent}
    action |= {"schema": schema} if schema else {}
    if respond is not False:
        action["verdicts"] = ["approve", "edit", "reject", "respond"]
        action |= {"response": respond} if isinstance(respond, Mapping) else {}
    words = {"title": title or name, "summary": summary, "for_whom": for_whom, "amount": amount, "resource": resource}
    body = {**words, "risk": risk, "reasons": list(reasons), "actions": [action], "state": dict(state or {})}
    return Posting(body | {"policy": policy, "agent": agent, "team": team}, key, timeout)


def post(api: Api, posting: Posting, *, deferred: bool = False) -> Op[Turn]:
    """Post the gate: nothing in the body tells one process from the next, so that its key is good for all of them."""
    turn = yield from api.post("gates", {**posting.body, "deferred": deferred}, Turn, key=posting.key)
    if turn.gate is None:
        raise BadAnswer("The server took the gate and named none.")
    return turn


def allowed(api: Api, posting: Posting) -> Op[Allowed]:
    """Ask, wait for people, and begin what they allowed."""
    turn = yield from post(api, posting)
    return (yield from Way(api, turn.gate or 0, timeout=posting.timeout).allowed())


def _pointer(name: str) -> str:
    return name if name.startswith("/") else "/" + name.replace("~", "~0").replace("/", "~1")
