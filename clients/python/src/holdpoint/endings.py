"""Reads how a gate ended: the decision, the final arguments, and the exception for a refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from .answers import Gate, HandedOut
from .calls import Decision, in_words
from .errors import Answered, Expired, NotFound, NotHandedOut, Problem, Refused, Rejected, Withdrawn
from .sending import Api, Op

OLDER = (
    "The Holdpoint server is older than this client and cannot hand out the answer at gate {gate} once, so the call "
    "was not made. Update the server, then ask again."
)
NO_SCOPE = (
    "This token may not work on runs, so the answer at gate {gate} was not handed out to it and the call was not made. "
    "Use a token with the scope runs:work."
)
# A model takes "ask again after 23:50" for an order, and asks until somebody says yes. The server says the same.
INSTEAD = (
    "Do not do it another way. Do not ask for it again unasked: go on without it, or tell the person and ask what they "
    "want."
)
KEPT_BACK = "The server did not hand out the answer at gate {gate}, so the call was not made: {why}"


@dataclass(frozen=True)
class Said:
    """People's answer to a question: `decision` says who decided, `arguments` has the final values.

    An approval is for one use: `told_at` says when the same one was handed out before, None the first time. A program
    that comes again under its key looks whether it did then what was approved.
    """

    gate: int
    run: int
    url: str
    decision: Decision
    arguments: dict[str, Any]
    edits: list[dict[str, Any]]
    answer: Any = None  # given instead of a decision
    told_at: datetime | None = None

    @property
    def changes(self) -> list[str]:
        """Return their changes in words; empty without changes."""
        return in_words(self.edits)


def gate_refusal(gate: Gate, actions: Sequence[str], known: Mapping[str, Any]) -> Refused | None:
    """Return the exception for a gate of which nothing may be done, else None. `known`: the gate, run and page."""
    ending, about = gate.outcome, ", ".join(actions)
    if ending is None:
        return None
    if ending.kind == "expired":
        return Expired(not_done(f"Nobody answered gate {known['gate']} in time, so {about} is not done"), **known)
    if ending.kind == "withdrawn":
        message = f"Gate {known['gate']} was withdrawn, so {about} is not done: {ending.feedback}"
        return Withdrawn(not_done(message), reason=ending.feedback, **known)
    words = [ending.actions[name] for name in actions if name in ending.actions]
    if len(words) == 1 and words[0].verdict == "respond":
        message = f"{words[0].by} answered instead of {about}, which is not done."
        return Answered(message, by=words[0].by, answer=words[0].response, **known)
    if ending.kind != "rejected" and not (words and all(outcome.verdict == "reject" for outcome in words)):
        return None
    reason = " ".join(dict.fromkeys(outcome.reason for outcome in words if outcome.reason)) or ending.feedback
    by = next((outcome.by for outcome in words if outcome.by), "") or ending.by
    message = f"{by} said no to {about}{f': {reason}' if reason else ''}"
    return Rejected(not_done(message), by=by, reason=reason, **known)


def hand_out(api: Api, gate: int, *, to: str, frees: str = "") -> Op[HandedOut]:
    """Record that the approval at a gate is handed out to one call, which names itself by `to`. Raises NotHandedOut."""
    try:
        return (yield from api.post(f"gates/{gate}/handouts", {"to": to, "frees": frees}, HandedOut))
    except Problem as refusal:
        raise (yield from kept_back(api, gate, refusal)) from refusal


def kept_back(api: Api, gate: int, refusal: Problem) -> Op[NotHandedOut]:
    """Return the exception for an answer that the server refused to hand out."""
    words = KEPT_BACK.format(gate=gate, why=refusal.detail)
    if refusal.code == "insufficient_scope":
        words = NO_SCOPE.format(gate=gate)
    elif isinstance(refusal, NotFound) and not (yield from _hands_out(api, gate)):
        words = OLDER.format(gate=gate)
    return NotHandedOut(words, gate=gate)


def _hands_out(api: Api, gate: int) -> Op[bool]:
    """Tell whether the server knows the address, whose 404 is also for a gate that is hidden: then GET is a 405."""
    try:
        yield from api.get(f"gates/{gate}/handouts", HandedOut)
    except Problem as refusal:
        return not isinstance(refusal, NotFound)
    return True


def decision_of(gate: Gate, action: str) -> Decision:
    """Return the decision on one action of a gate."""
    ending = gate.outcome
    word = ending.actions.get(action) if ending else None
    comments = [vote.comment for vote in gate.agreement.voices if vote.counts and vote.comment]
    return Decision(
        verdict=word.verdict if word else (ending.kind if ending else ""),
        by=ending.by if ending else "",
        at=ending.at if ending else None,
        comment="\n".join(comments),
    )


def not_done(why: str, fact: str = "") -> str:
    """Return what an agent is told of what is not done now: why, what to do instead, and a fact at the end."""
    return " ".join(filter(None, (end_sentence(why), INSTEAD, fact)))


def end_sentence(text: str) -> str:
    """Return the text, ended as a sentence."""
    text = text.rstrip()
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
