"""Requests as a program sends them: the plan of an agent, the cards of its gates, and questions that are gates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from typing_extensions import TypedDict

from .answers import Turn, Turns
from .errors import BadAnswer
from .json_pointer import pointer_to
from .sending import Api, Op, to_json_data

Kind = Literal["step", "effect", "gate"]
Risk = Literal["low", "medium", "high", "critical"]
Verdict = Literal["approve", "edit", "reject", "respond"]
BINDS_CALL = ("id", "tool", "arguments", "undo", "idempotent")
BINDS = ("state", "policy", "agent", "team")
THREAD: ContextVar[str] = ContextVar("holdpoint_thread", default="")
DECIMAL = r"^[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?$"


class Sent(BaseModel):
    """A request body: only members that were set are sent."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    def body(self) -> dict[str, Any]:
        """Return the JSON for the server."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)


class Step(Sent):
    """One step of a plan; docs/api.md and the server's OpenAPI say what each member means."""

    name: str
    kind: Kind = "step"
    title: str = ""
    doc: str = ""
    reads: Sequence[str] = ()
    writes: Sequence[str] = ()
    code_hash: str = ""
    reads_world: bool = False
    undo: str = ""
    irreversible: bool = False
    idempotent: bool = False
    guarded: bool = True
    action: str = ""
    responds: str = ""
    policy: str = ""
    allows: Sequence[str] = ()
    edits: Sequence[str] = ()
    on_reject: str = ""
    on_expire: str = ""
    waits: bool = True
    feedback: str = ""
    jumps: Sequence[str] = ()
    ends: bool = False
    retry: int = 3
    backoff: float = 1.0
    loop_guard: int = 0


class Write(Sent):
    """The writes of a step, by field: a value, items for the end of a list, or (start, delete, items) in one."""

    step: str
    set: Mapping[str, Any] = {}
    append: Mapping[str, Sequence[Any]] = {}
    splice: Mapping[str, tuple[int, int, Sequence[Any]]] = {}
    next_step: str | None = None
    took: float = 0.0
    notes: Sequence[str] = ()

    def body(self) -> dict[str, Any]:
        ops: list[dict[str, Any]] = [{"op": "set", "field": name, "value": value} for name, value in self.set.items()]
        ops += [{"op": "append", "field": name, "items": list(added)} for name, added in self.append.items()]
        for name, (start, delete, items) in self.splice.items():
            ops.append({"op": "splice", "field": name, "start": start, "delete": delete, "items": list(items)})
        more = {"next_step": self.next_step, "took": self.took, "notes": list(self.notes)}
        return {"step": self.step, "ops": ops, **more}


class Action(Sent):
    """One action of a gate: its arguments are in the state, at `pointer`; `effect` performs it."""

    id: str
    title: str = ""
    tool: str = ""
    effect: str = ""
    pointer: str = ""
    arguments: Any = None
    edits: bool = True
    pinned: Sequence[str] = ()
    verdicts: Sequence[Verdict] = ()
    arguments_schema: Mapping[str, Any] = Field({}, alias="schema")
    response: Mapping[str, Any] = {}


class Quote(Sent):
    """A quote from the state, at `pointer`, shown as somebody's own words beside the agent's account."""

    label: str
    pointer: str
    role: str = ""


class Card(Sent):
    """The proposal of a gate."""

    title: str
    actions: Sequence[Action]
    summary: str = ""
    for_whom: str = ""
    amount: str = ""
    resource: str = ""
    risk: Risk = "medium"
    reasons: Sequence[str] = ()
    quotes: Sequence[Quote | Mapping[str, str]] = ()
    on_reject: str = ""


class CardTexts(TypedDict, total=False):
    """The texts of the gates that are about one run or one thread."""

    title: str
    summary: str
    risk: Risk
    reasons: Sequence[str]
    for_whom: str
    resource: str


class AskedUnder(TypedDict, total=False):
    """The people who decide, and the names under which they are asked: the members are those of `hp.approve`."""

    policy: str
    key: str
    team: str
    thread: str


class Schemas(GenerateJsonSchema):
    """Pydantic's schemas for serialized values, without lookaround patterns: those backtrack."""

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        """Write a Decimal as text."""
        return {"type": "string", "pattern": DECIMAL}


@contextmanager
def thread(name: str) -> Iterator[None]:
    """List everything asked inside the block together, as parts of one conversation.

    It applies to this thread or task, and to those that copy its context, as asyncio.to_thread does.
    """
    before = THREAD.set(name)
    try:
        yield
    finally:
        THREAD.reset(before)


@dataclass(frozen=True, kw_only=True)
class Posting:
    """A gate to post. `key`: the request's idempotency key; the same key again is the same gate."""

    body: dict[str, Any]
    key: str = ""
    timeout: float | None = None

    @property
    def asked(self) -> dict[str, Any]:
        """Return the arguments of its actions, by their ids."""
        return {action["id"]: action["arguments"] for action in self.body["actions"]}

    @property
    def bound(self) -> Any:
        """Return what makes it the same question in other words, as the server sees it under a key."""
        if not all(self.asked.values()):
            return self.body  # without arguments it is what the words say
        calls = [[action.get(name) for name in BINDS_CALL] for action in self.body["actions"]]
        return [calls, *(self.body.get(name) for name in BINDS)]


@dataclass(frozen=True)
class Ask:
    """One of several actions to ask about at once; the members are those of `hp.approve`.

    `draws` shows arguments as people read them, beside their exact values: {"kind": "command", "at": "/command"}, or
    {"kind": "diff", "before": "/old", "at": "/new", "name": "/path"}. A diff without `before` may have `was`: the text
    itself that it replaces, as you found it.
    """

    name: str
    arguments: Mapping[str, Any] | BaseModel | None = None
    title: str = ""
    pinned: Sequence[str] = ()
    schema: type[BaseModel] | Mapping[str, Any] | None = None
    respond: bool | Mapping[str, Any] = False
    undo: str = ""
    idempotent: bool = False
    tool: str = ""
    draws: Sequence[Mapping[str, str]] = ()

    def body(self) -> dict[str, Any]:
        schema = self.schema or (type(self.arguments) if isinstance(self.arguments, BaseModel) else None)
        if isinstance(schema, type):
            schema = schema.model_json_schema(mode="serialization", schema_generator=Schemas)
        found: dict[str, Any] = {"id": self.name, "title": self.title, "tool": self.tool or self.name}
        pinned = [name if name.startswith("/") else pointer_to(name) for name in self.pinned]
        found |= {"arguments": to_json_data(self.arguments or {}), "pinned": pinned}
        found |= {"undo": self.undo, "idempotent": self.idempotent} | ({"schema": schema} if schema else {})
        found |= {"draws": [dict(drawing) for drawing in self.draws]} if self.draws else {}
        if self.respond is not False:
            edit = ["edit"] if found["arguments"] or schema else []  # an action without arguments cannot be edited
            found["verdicts"] = ["approve", *edit, "reject", "respond"]
            found |= {"response": self.respond} if isinstance(self.respond, Mapping) else {}
        return found


def question(
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
    quotes: Sequence[Quote | Mapping[str, str]] = (),
    pinned: Sequence[str] = (),
    schema: type[BaseModel] | Mapping[str, Any] | None = None,
    respond: bool | Mapping[str, Any] = False,
    undo: str = "",
    idempotent: bool = False,
    tool: str = "",
    draws: Sequence[Mapping[str, str]] = (),
    policy: str = "",
    agent: str = "",
    team: str = "",
    thread: str = "",
    key: str = "",
    timeout: float | None = None,
) -> Posting:
    """Ask whether `name` may be done with these arguments.

    `state` is shown beside them; `quotes` point at people's own words in it. `pinned` names the arguments that are
    shown first. `schema` describes them, as a model or a JSON Schema; the arguments may be a model themselves.
    `respond`: people may answer instead (by this JSON Schema). `undo` names what undoes it,
    `idempotent` says that it may be sent twice under one key. `draws` shows arguments as a diff or a command, see Ask.
    `thread` names the conversation that it is a part of.
    `key`: the same one again asks nothing new but goes on with the first gate. `timeout`: seconds to wait for people;
    None waits for ever.

    Raises Rejected, Expired, Withdrawn, Stopped, Answered and AlreadyDone (all of them Refused), StillOpen, Unknown and
    Altered.
    """
    action = Ask(name, arguments, title, pinned, schema, respond, undo, idempotent, tool, draws)
    return question_each(
        [action], state=state, title=title or name, summary=summary, for_whom=for_whom, amount=amount,
        resource=resource, risk=risk, reasons=reasons, quotes=quotes, policy=policy, agent=agent, team=team,
        thread=thread, key=key, timeout=timeout,
    )  # fmt: skip


def question_each(
    actions: Sequence[Ask],
    *,
    title: str,
    state: Mapping[str, Any] | None = None,
    summary: str = "",
    for_whom: str = "",
    amount: str = "",
    resource: str = "",
    risk: Risk = "medium",
    reasons: Sequence[str] = (),
    quotes: Sequence[Quote | Mapping[str, str]] = (),
    policy: str = "",
    agent: str = "",
    team: str = "",
    thread: str = "",
    key: str = "",
    timeout: float | None = None,
) -> Posting:
    """Ask about several actions at one gate, each with a verdict of its own; they are done in this order.

    The other arguments are those of `approve`. In the block, `refused` has the rejected actions, and `answers` the
    answers given instead of an action. Raises Rejected if no action may be done, Expired, Withdrawn, Stopped,
    StillOpen, Unknown and Altered.
    """
    words = {"title": title, "summary": summary, "for_whom": for_whom, "amount": amount, "resource": resource}
    quote_bodies = [quote.body() if isinstance(quote, Quote) else dict(quote) for quote in quotes]
    body: dict[str, Any] = {
        **words,
        "risk": risk,
        "reasons": list(reasons),
        "actions": [action.body() for action in actions],
    }
    body |= {"state": dict(state or {}), "quotes": quote_bodies, "policy": policy, "agent": agent, "team": team}
    return Posting(body=body | {"thread": thread or THREAD.get()}, key=key, timeout=timeout)


def post_gate(api: Api, posting: Posting, *, deferred: bool = False, ask_only: bool = False) -> Op[Turn]:
    """Post the gate. The body is the same in every process, so that its key is good for all of them."""
    how = {"deferred": deferred} | ({"ask_only": True} if ask_only else {})
    turn = yield from api.post("gates", {**posting.body, **how}, Turn, key=posting.key)
    if turn.gate is None:
        raise BadAnswer("The server answered without the number of the gate.")
    return turn


def post_all(api: Api, postings: Sequence[Posting], *, key: str, ask_only: bool = False) -> Op[list[Turn]]:
    """Post the gates in one call, deferred. Raises ValueError where they are not all for one agent and team."""
    shared = [{name: posting.body[name] for name in ("agent", "team")} for posting in postings]
    if any(owner != shared[0] for owner in shared):
        raise ValueError("Questions of one call are for one agent and team. Ask those for others in another call.")
    gates = [{name: value for name, value in posting.body.items() if name not in shared[0]} for posting in postings]
    gates = [gate | ({"ask_only": True} if ask_only else {}) for gate in gates]
    if not gates:
        return []
    return (yield from api.post("gates/batches", {**shared[0], "deferred": True, "gates": gates}, Turns, key=key)).gates
