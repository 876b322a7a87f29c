"""The plan of such a run, which is one for all agents and frameworks, the calls that it asks about, and the verdicts.

1. `agent` works until a call needs an approval, and saves the framework's state and the calls. 2. `ready` is where a
rejection of all calls comes back to, so that nothing of the agent's work is lost. 3. `review` asks. 4. `go_on` applies
the verdicts and works on, up to the next question or the end. 5. `call` performs one approved call, in any order. 6.
`back` is where the run goes from a call whose end people had to enter.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from .. import exact_calls, json_pointer
from ..calls import in_words
from ..endings import end_sentence, not_done
from ..errors import CannotAsk, CannotResume, NotJson
from ..posting import Action, Card, CardTexts, Step
from ..sending import to_json_data

R = TypeVar("R")
FORMAT = 1  # of the state; a version of the plan carries it
MOST = 50  # calls of one gate
TITLE = 200  # characters of a run's title
NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9._:-]")
WORK = ("checkpoint", "calls", "card", "calling", "results", "before", "told", "output")
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "input": {},
        "checkpoint": {"title": "The framework's own state"},
        "calls": {"type": "array", "items": {"type": "object"}},
        "card": {"type": "object"},
        "calling": {"type": "string"},
        "results": {"type": "object"},
        "before": {"title": "The results before the call", "type": "object"},
        "told": {"type": "integer"},
        "output": {},
        "feedback": {"type": "array", "items": {}},
        "decision": {"type": "object"},
    },
    "required": ["input"],
}


def steps(policy: str) -> list[Step]:
    """Return the steps, with the policy by which people decide."""
    return [
        Step(name="agent", title="Let the agent work", reads=["input"], writes=WORK, ends=True),
        Step(name="ready", title="Bring the calls to people", jumps=["go_on"]),
        Step(
            name="review", kind="gate", title="Review the calls", reads=["calls"], allows=["call"], edits=["calls"],
            on_reject="ready", on_expire="go_on", feedback="feedback", policy=policy,
        ),
        Step(
            name="go_on", title="Go on with the verdicts", reads=["checkpoint", "calls", "results"], writes=WORK,
            jumps=["go_on", "call", "ready"], ends=True,
        ),
        Step(
            name="call", kind="effect", title="Call the tool", reads=["calls", "calling"], writes=["results"],
            action="calling", irreversible=True, jumps=["go_on"],
        ),
        Step(
            name="back", title="Come back from the call", reads=["calling", "before", "results"], writes=["results"],
            jumps=["go_on"], ends=True,
        ),
    ]  # fmt: skip


def version(framework: str, policy: str) -> str:
    """Return the name of the plan's version, which the policy is a part of."""
    return f"{framework}-{FORMAT}" + (f"-{hashlib.sha256(policy.encode()).hexdigest()[:12]}" if policy else "")


@dataclass(frozen=True)
class ToolCall:
    """A call that needs an approval. `call` is the framework's id of it, `id` its name at the gate."""

    id: str
    tool: str
    call: str
    arguments: dict[str, Any]
    agent: str = ""
    schema: Mapping[str, Any] | None = field(default=None, compare=False)
    title: str = ""
    notes: tuple[str, ...] = ()  # shown with the card's reasons

    def saved(self) -> dict[str, Any]:
        """Return what the state keeps of it."""
        members = {"id": self.id, "tool": self.tool, "call": self.call, "agent": self.agent}
        return {**members, "arguments": self.arguments, "asked": self.arguments}


@dataclass
class Came(Generic[R]):
    """The point at which the framework stopped: with calls that ask and a checkpoint, or at its end with an output."""

    result: R
    calls: list[ToolCall] = field(default_factory=list)
    checkpoint: Any = None
    output: Any = None


def digest_call(tool: str, arguments: Any) -> str:
    """Return the SHA-256, in hex, of a call in canonical JSON: 1 and 1.0 are two things. Raises CannotAsk."""
    try:
        return exact_calls.digest_values(tool, to_json_data(arguments))
    except (NotJson, ValueError) as error:
        raise CannotAsk(
            f"The arguments of {tool} cannot be shown: {end_sentence(str(error))} The model must give values that "
            "JSON can hold."
        ) from error


def name_tool_calls(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """Return the calls with their names at the gate: the tool's, numbered where it is called twice.

    Raises CannotAsk without calls, with too many, for two calls under one id, and for arguments that are no JSON.
    """
    if not calls:
        raise CannotAsk("The agent stopped without a call to approve. Answer what it waits for in your own code.")
    if len(calls) > MOST:
        raise CannotAsk(f"The agent made {len(calls)} calls at once; a gate asks about {MOST} at most. Limit its turn.")
    found: list[ToolCall] = []
    seen: dict[str, int] = {}
    for call in calls:
        digest_call(call.tool, call.arguments)
        if not call.call or any(call.call == other.call for other in found):
            raise CannotAsk(
                f"Two calls of the agent have the id {call.call!r}, so a verdict on one could reach the other. The "
                "model must give each call an id of its own."
            )
        plain_name = NOT_IN_A_NAME.sub("_", call.tool)[:90] or "call"
        seen[plain_name] = seen.get(plain_name, 0) + 1
        name = plain_name if seen[plain_name] == 1 else f"{plain_name}_{seen[plain_name]}"
        found.append(ToolCall(**{**vars(call), "id": name}))
    return found


class Shown(CardTexts, total=False):
    """The texts that people read at the gates, beside the calls. `pinned` names arguments that are shown first."""

    pinned: Sequence[str]


def make_card(shown: Shown, agent: str, calls: Sequence[ToolCall], limitation: str = "") -> Card:
    """Return the card of a gate about these calls. `limitation`: what the framework cannot do."""
    notes = [note for call in calls for note in call.notes]
    return Card(
        title=(shown.get("title") or f"{agent}: {', '.join(call.tool for call in calls)}")[:500],
        summary="\n\n".join(filter(None, [shown.get("summary"), limitation])), risk=shown.get("risk", "medium"),
        reasons=[*shown.get("reasons", ()), *notes][:50], for_whom=shown.get("for_whom", ""),
        resource=shown.get("resource", ""),
        actions=[_action(number, call, shown.get("pinned", ())) for number, call in enumerate(calls)],
    )  # fmt: skip


def _action(number: int, call: ToolCall, pinned: Sequence[str]) -> Action:
    title, tool = call.title or call.tool, NOT_IN_A_NAME.sub("_", call.tool)[:100]
    known: dict[str, Any] = {"schema": dict(call.schema)} if call.schema else {}
    return Action(
        id=call.id, title=f"{title} ({call.agent})" if call.agent else title, tool=tool, effect="call",
        pointer=f"/calls/{number}/arguments",
        pinned=[json_pointer.pointer_to(name) for name in pinned if name in call.arguments], **known,
    )  # fmt: skip


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
        return in_words([change.as_edit() for change in json_pointer.changes(self.asked, self.arguments)])

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
