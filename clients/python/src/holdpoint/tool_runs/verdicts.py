"""Reads people's decision on each call from the run's state, and words it for the agent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..calls import in_words
from ..endings import not_done
from ..errors import CannotResume
from ..json_pointer import pointer_to
from .plan import digest_call

Kind = Literal["approve", "edit", "reject", "expired"]
OTHERWISE = "Do not do it another way."  # of what was done
HAPPENED = "It was done, as people found out. Its result is not known."


@dataclass(frozen=True)
class Verdict:
    """The verdict on one call. `arguments` are those to run, `done` says that it ran, with `result`."""

    id: str
    tool: str
    call: str
    kind: Kind
    arguments: dict[str, Any]
    asked: dict[str, Any]
    by: str = ""
    reason: str = ""
    agent: str = ""  # the one that made the call
    done: bool = False
    result: Any = None

    @property
    def runs(self) -> bool:
        """Tell whether the call may run."""
        return self.kind in ("approve", "edit")

    @property
    def digest(self) -> str:
        """Return the digest of what may run."""
        return digest_call(self.tool, self.arguments)

    @property
    def changes(self) -> list[str]:
        """Return what people changed, in words."""
        return in_words(_patch(self.asked, self.arguments))

    @property
    def words(self) -> str:
        """Return what the agent is told of a call that does not run."""
        if self.kind == "expired":
            return not_done(f"Nobody decided about {self.tool} in time, so it was not done. This is not a rejection")
        refusal = f"{self.by} said no to {self.tool}"
        return not_done(f"{refusal}: {self.reason}" if self.reason else refusal)


def read_verdicts(state: Mapping[str, Any]) -> list[Verdict]:
    """Return the verdicts on the calls of the newest gate."""
    return [_verdict(state, call) for call in state.get("calls") or []]


def removed_tool_error(tool: str, agent: str, gate: int) -> CannotResume:
    """Return the error for a tool that was removed from its agent while people decided about a call of it."""
    return CannotResume(
        f"The agent {agent} has no tool {tool} by now, about which people decided at gate {gate or '?'}, so it did not "
        "run. Resume with the tools that it had when it asked."
    )


def entered_results(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results after people have entered that of the call at which the run stood, whatever they wrote.

    Those of the calls before it stay as they were recorded.
    """
    call, wrote = str(state.get("calling") or ""), state.get("results") or {}
    before = state.get("before") or {}
    own = {name: result for name, result in wrote.items() if name not in before}
    return {**before, call: wrote.get(call, own or HAPPENED)}


def _verdict(state: Mapping[str, Any], call: Mapping[str, Any]) -> Verdict:
    decision = state.get("decision") or {}
    results = state.get("results") or {}
    verdict = (decision.get("verdicts") or {}).get(call["id"]) or {}
    changed = digest_call(call["tool"], call["arguments"]) != digest_call(call["tool"], call["asked"])
    kind: Kind = "edit" if changed else "approve"
    reason, by = str(verdict.get("reason") or ""), str(verdict.get("by") or decision.get("by") or "")
    if decision.get("kind") == "expired":
        kind = "expired"
    elif decision.get("kind") == "rejected" or verdict.get("verdict") == "reject":
        kind, reason = "reject", reason or _last(state)
    return Verdict(
        id=call["id"], tool=call["tool"], call=call["call"], kind=kind, arguments=dict(call["arguments"]),
        asked=dict(call["asked"]), by=by, reason=reason, agent=call["agent"], done=call["id"] in results,
        result=results.get(call["id"]),
    )  # fmt: skip


def _last(state: Mapping[str, Any]) -> str:
    """Return people's newest words about all calls."""
    for entry in reversed(state.get("feedback") or []):
        return str(entry.get("text") or "") if isinstance(entry, Mapping) else str(entry)
    return ""


def _patch(before: Any, after: Any, at: str = "") -> list[dict[str, Any]]:
    """Return the changes from one value to another as a JSON Patch that replaces whole lists."""
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return (
            [] if digest_call("", before) == digest_call("", after) else [{"op": "replace", "path": at, "value": after}]
        )
    found: list[dict[str, Any]] = []
    for name in dict.fromkeys([*before, *after]):
        place = at + pointer_to(name)
        if name not in after:
            found.append({"op": "remove", "path": place})
        elif name not in before:
            found.append({"op": "add", "path": place, "value": after[name]})
        else:
            found += _patch(before[name], after[name], place)
    return found
