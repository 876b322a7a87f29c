"""A reviewer's requests to the server, as operations for a driver, and the bodies of decisions, which are pure."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from .. import json_pointer
from ..errors import Problem
from ..json_pointer import Change
from ..sending import Api, Op, Request, encode_body

Json = dict[str, Any]
APPROVE, EDIT, REJECT, RESPOND, ANSWER = "approve", "edit", "reject", "respond", "answer"
STOP, BACK = "stop", "back"
MOST = 1000  # gates or runs that are listed
PAGE = 200
WAIT = 25.0  # seconds for which one request waits for events


def gates(api: Api) -> Op[list[Json]]:
    """List the open gates, the longest open first."""
    return _list(api, "gates")


def gate(api: Api, number: int) -> Op[Json]:
    return _get(api, f"gates/{number}")


def form(api: Api, number: int) -> Op[Json]:
    """Return what the gate's page offers to fill in."""
    return _get(api, f"gates/{number}/form")


def choices(api: Api, gate: Json) -> Op[list[Json]]:
    """Return what each choice at a gate would do; none once it is closed."""
    if gate["status"] != "open":
        return []
    items: list[Json] = (yield from _get(api, f"gates/{gate['id']}/impacts"))["items"]
    return items


def quoted_state(api: Api, gate: Json) -> Op[Json | None]:
    """Return the state whose words the gate quotes; None where it quotes none, or the reader may not see its run."""
    if not gate["card"].get("quotes"):
        return None
    try:
        saved = yield from checkpoints(api, gate["run"])
        seq = next((checkpoint["seq"] for checkpoint in saved if checkpoint["id"] == gate["checkpoint"]), None)
        if seq is None:
            return None
        state: Json = (yield from _get(api, f"runs/{gate['run']}/checkpoints/{seq}"))["state"]
        return state
    except Problem:
        return None


def preview(api: Api, number: int, decision: Json) -> Op[Json]:
    """Return what a decision would do. Nothing is recorded."""
    return _post(api, f"gates/{number}/impacts", decision)


def decide(api: Api, number: int, decision: Json) -> Op[Json]:
    """Record a decision, once."""
    return _post(api, f"gates/{number}/decisions", decision, key=uuid.uuid4().hex)


def undo(api: Api, number: int) -> Op[Json]:
    """Take your decision back while its gate is still open."""
    return _post(api, f"gates/{number}/undos", {}, key=uuid.uuid4().hex)


def runs(api: Api, *, status: str = "") -> Op[list[Json]]:
    """List the newest runs."""
    items: list[Json] = (yield from _get(api, "runs", limit=str(PAGE), status=status))["items"]
    return items


def run(api: Api, number: int) -> Op[Json]:
    return _get(api, f"runs/{number}")


def checkpoints(api: Api, number: int) -> Op[list[Json]]:
    """List a run's checkpoints, the newest first."""
    return _list(api, f"runs/{number}/checkpoints")


def rewind_impact(api: Api, number: int, to: int, feedback: str = "") -> Op[Json]:
    """Return what a rewind would do. Nothing is written."""
    return _post(api, f"runs/{number}/impacts", {"kind": "rewind", "at": to, "feedback": feedback})


def rewind(api: Api, number: int, order: Json) -> Op[Json]:
    """Rewind a run: exactly as `seen` was previewed, or not at all."""
    return _post(api, f"runs/{number}/rewinds", order, key=uuid.uuid4().hex)


def events(api: Api, after: str, *, subject: str = "", wait: float = WAIT) -> Op[Json]:
    """Return the events after a cursor, or none after `wait` seconds."""
    query = {"after": after, "wait": f"{wait:g}", **({"subject": subject} if subject else {})}
    return api.sent(Request("GET", "events", query, timeout=30.0 + wait))


def _list(api: Api, path: str) -> Op[list[Json]]:
    items: list[Json] = []
    cursor = ""
    while True:
        page = yield from _get(api, path, limit=str(PAGE), cursor=cursor)
        items += page["items"]
        cursor = page["next"] or ""
        if not cursor or len(items) >= MOST:
            return items


def _get(api: Api, path: str, **query: str) -> Op[Json]:
    return api.sent(Request("GET", path, {name: value for name, value in query.items() if value}))


def _post(api: Api, path: str, body: Json, *, key: str = "") -> Op[Json]:
    return api.sent(Request("POST", path, body=encode_body(body), key=key))


def approve(gate: Json, comment: str = "") -> Json:
    """Approve all that the gate asks."""
    return {"seen": gate["digest"], "verdict": APPROVE, "comment": comment}


def edit(gate: Json, arguments: Json, comment: str = "") -> Json:
    """Approve with other arguments, by action id."""
    return {"seen": gate["digest"], "verdict": EDIT, "arguments": arguments, "comment": comment}


def reject(gate: Json, reason: str, *, back_to: str | None = None) -> Json:
    """Reject everything: stop the run, or send it back to a step; "" is the step that the gate names."""
    then = {"then": STOP} if back_to is None else {"then": BACK, "back_to": back_to}
    return {"seen": gate["digest"], "verdict": REJECT, "comment": reason, **then}


def decide_actions(gate: Json, actions: Json, comment: str = "", **then: str) -> Json:
    """Decide each action by itself. Where all of them are rejected, `then` says what the run does."""
    return {"seen": gate["digest"], "actions": actions, "comment": comment, **then}


def answer(gate: Json, choice: str, value: Any = None, comment: str = "") -> Json:
    """Answer the question of a recovery gate."""
    chosen = {"choice": choice, **({} if value is None else {"value": value})}
    return {"seen": gate["digest"], "verdict": ANSWER, "answer": chosen, "comment": comment}


def optional_conditions(gate: Json) -> list[Json]:
    """List the conditions that a reviewer may add or drop."""
    return [condition for condition in gate["card"].get("preconditions") or () if not condition.get("required")]


def with_conditions(gate: Json, wanted: Sequence[str]) -> Json:
    """Return the members of an approval that has just these of the optional conditions."""
    offered = {str(condition["id"]): bool(condition.get("preselected")) for condition in optional_conditions(gate)}
    added = [name for name in wanted if not offered.get(name)]
    dropped = [name for name, ticked in offered.items() if ticked and name not in wanted]
    return {"preconditions": added, "dropped": dropped}


def bind(decision: Json, preview: Json, confirm: Sequence[int]) -> Json:
    """Bind the decision to what its preview showed, and confirm these repeated effects."""
    return {**decision, "shown": preview["shown"], "confirm": list(confirm)}


def actions_of(gate: Json) -> list[Json]:
    return gate["card"].get("actions") or []


def arguments_of(gate: Json) -> Json:
    """Return the arguments of the gate's actions, by id."""
    return {str(action["id"]): action.get("arguments") for action in actions_of(gate)}


def edits_of(gate: Json, decision: Json) -> list[Change]:
    """List what a decision changes in the arguments, by pointers that begin with the action's id."""
    now = arguments_of(gate)
    new = dict(decision.get("arguments") or {})
    actions = decision.get("actions") or {}
    new |= {name: action["arguments"] for name, action in actions.items() if "arguments" in action}
    both = [name for name in now if name in new]
    return [
        change for name in both for change in json_pointer.changes(now[name], new[name], json_pointer.pointer_to(name))
    ]


def takes_text(action: Json) -> bool:
    """Tell whether a response to the action is a text."""
    return (action.get("response") or {"type": "string"}).get("type") == "string"


def repeats(preview: Json) -> list[int]:
    """List the numbers of the effects that it would repeat."""
    return [int(repeat["effect"]) for repeat in (preview.get("impact") or {}).get("repeats") or ()]
