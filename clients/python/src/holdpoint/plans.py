"""The plan of an agent, and the cards of its gates, as the program sends them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Kind = Literal["step", "effect", "gate"]
Risk = Literal["low", "medium", "high", "critical"]
Verdict = Literal["approve", "edit", "reject", "respond"]


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
        """Return the JSON for the server."""
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
