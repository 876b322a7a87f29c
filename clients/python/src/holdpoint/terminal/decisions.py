"""Builds the body of a decision. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .. import json_pointer
from ..json_pointer import Change

Json = dict[str, Any]
APPROVE, EDIT, REJECT, RESPOND, ANSWER = "approve", "edit", "reject", "respond", "answer"
STOP, BACK = "stop", "back"


def approve(gate: Mapping[str, Any], comment: str = "") -> Json:
    """Approve all that the gate asks."""
    return {"seen": gate["digest"], "verdict": APPROVE, "comment": comment}


def edit(gate: Mapping[str, Any], arguments: Mapping[str, Any], comment: str = "") -> Json:
    """Approve with other arguments, by action id."""
    return {"seen": gate["digest"], "verdict": EDIT, "arguments": dict(arguments), "comment": comment}


def reject(gate: Mapping[str, Any], reason: str, *, back_to: str | None = None) -> Json:
    """Reject everything: stop the run, or send it back to a step; "" is the step that the gate names."""
    then = {"then": STOP} if back_to is None else {"then": BACK, "back_to": back_to}
    return {"seen": gate["digest"], "verdict": REJECT, "comment": reason, **then}


def decide_actions(gate: Mapping[str, Any], actions: Mapping[str, Any], comment: str = "", **then: str) -> Json:
    """Decide each action by itself. Where all of them are rejected, `then` says what the run does."""
    return {"seen": gate["digest"], "actions": dict(actions), "comment": comment, **then}


def optional(gate: Mapping[str, Any]) -> list[Json]:
    """List the conditions that a reviewer may add or drop."""
    return [condition for condition in gate["card"].get("preconditions") or () if not condition.get("required")]


def conditioned(gate: Mapping[str, Any], wanted: Sequence[str]) -> Json:
    """Return the members of an approval that has just these of the optional conditions."""
    offered = {str(condition["id"]): bool(condition.get("preselected")) for condition in optional(gate)}
    added = [name for name in wanted if not offered.get(name)]
    dropped = [name for name, ticked in offered.items() if ticked and name not in wanted]
    return {"preconditions": added, "dropped": dropped}


def answer(gate: Mapping[str, Any], choice: str, value: Any = None, comment: str = "") -> Json:
    """Answer the question of a recovery gate."""
    chosen = {"choice": choice, **({} if value is None else {"value": value})}
    return {"seen": gate["digest"], "verdict": ANSWER, "answer": chosen, "comment": comment}


def rejects_all(actions: Mapping[str, Any]) -> bool:
    """Tell whether every action is rejected, which rejects the gate."""
    return bool(actions) and all(action["verdict"] == REJECT for action in actions.values())


def arguments_of(gate: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of the gate's actions, by id."""
    return {str(action["id"]): action.get("arguments") for action in gate["card"].get("actions") or ()}


def edits_of(gate: Mapping[str, Any], decision: Mapping[str, Any]) -> list[Change]:
    """List what a decision changes in the arguments, by pointers that begin with the action's id."""
    now = arguments_of(gate)
    new = dict(decision.get("arguments") or {})
    new |= {
        name: action["arguments"] for name, action in (decision.get("actions") or {}).items() if "arguments" in action
    }
    return [change for name in now if name in new for change in _edits(now[name], new[name], name)]


def _edits(before: Any, after: Any, name: str) -> list[Change]:
    return list(json_pointer.changes(before, after, json_pointer.pointer_to(name)))


def takes(gate: Mapping[str, Any], verdict: str) -> bool:
    """Tell whether some action of the gate takes this verdict."""
    return any(verdict in (action.get("verdicts") or ()) for action in gate["card"].get("actions") or ())


def confirming(body: Mapping[str, Any], preview: Mapping[str, Any], confirm: Sequence[int] = ()) -> Json:
    """Bind the decision to what its preview showed, and confirm these repeated effects."""
    return {**body, "shown": preview["shown"], "confirm": list(confirm)}


def repeats(preview: Mapping[str, Any]) -> list[int]:
    """List the numbers of the effects that it would repeat."""
    found = preview.get("impact") or {}
    return [int(repeat["effect"]) for repeat in found.get("repeats") or ()]
