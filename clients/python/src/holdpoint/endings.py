"""How a gate ended: whose word it was, what they left of what was asked, and what is raised after a no."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .answers import Gate
from .calls import Decision, in_words
from .errors import Answered, Expired, Refused, Rejected, Withdrawn


@dataclass(frozen=True)
class Said:
    """What people said to a question: `decision` has whose word it was, `arguments` what they left of it."""

    gate: int
    run: int
    url: str
    decision: Decision
    arguments: dict[str, Any]
    edits: list[dict[str, Any]]
    answer: Any = None  # where they answered in its place

    @property
    def changes(self) -> list[str]:
        """Return what they changed, in words; empty where nothing was."""
        return in_words(self.edits)


def refused(gate: Gate, actions: Sequence[str], known: Mapping[str, Any]) -> Refused | None:
    """Why nothing of what the gate asks may be done; None where something may. `known`: where it was asked."""
    ending, about = gate.outcome, ", ".join(actions)
    if ending is None:
        return None
    if ending.kind == "expired":
        return Expired(f"Nobody answered gate {known['gate']} in time, so {about} is not done.", **known)
    if ending.kind == "withdrawn":
        told = f"Gate {known['gate']} was withdrawn: {ending.feedback}"
        return Withdrawn(told, reason=ending.feedback, **known)
    words = [ending.actions[name] for name in actions if name in ending.actions]
    if len(words) == 1 and words[0].verdict == "respond":
        told = f"{words[0].by} answered in the place of {about}, which is not done."
        return Answered(told, by=words[0].by, answer=words[0].response, **known)
    if ending.kind != "rejected" and not (words and all(each.verdict == "reject" for each in words)):
        return None
    reason = " ".join(dict.fromkeys(each.reason for each in words if each.reason)) or ending.feedback
    by = next((each.by for each in words if each.by), "") or ending.by
    told = sentence(f"{by} said no to {about}{f': {reason}' if reason else ''}")
    return Rejected(f"{told} Do not do it another way.", by=by, reason=reason, **known)


def decision_of(gate: Gate, action: str) -> Decision:
    """Return what people said of one action of a gate."""
    ending = gate.outcome
    word = ending.actions.get(action) if ending else None
    comments = [each.comment for each in gate.agreement.voices if each.counts and each.comment]
    return Decision(
        verdict=word.verdict if word else (ending.kind if ending else ""),
        by=ending.by if ending else "",
        at=ending.at if ending else None,
        comment="\n".join(comments),
    )


def sentence(said: str) -> str:
    """Return what was said, ended as a sentence."""
    said = said.rstrip()
    return said if said.endswith((".", "!", "?", "…")) else f"{said}."
