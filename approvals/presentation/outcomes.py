"""How a gate ended, in words: who, what, and what runs now. Expired is not rejected, and neither is withdrawn."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from approvals.models import Gate, Outcome

VERBS = {
    "approved": "Approved",
    "edited": "Approved with an edit",
    "rejected": "Rejected",
    "answered": "Answered",
    "expired": "Expired: nobody answered in time",
    "withdrawn": "Withdrawn",
}
ICONS = {"approved": "check", "edited": "pencil", "rejected": "x", "answered": "reply", "expired": "clock"}


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How one gate ended."""

    kind: str  # an Outcome.Kind
    state: str  # for [data-status]
    by: str  # a person's name; empty where nobody decided
    at: datetime | None
    then: str  # what happens now, one sentence
    icon: str
    said: str = ""  # the answer that was chosen, as the question put it

    @property
    def words(self) -> str:
        verb = VERBS.get(self.kind, "Closed")
        return f"{verb} by {self.by}" if self.by and self.kind not in ("expired", "withdrawn") else verb


def ended(gate: Gate) -> Ended:
    """How a closed gate ended. Needs its outcome and decisions."""
    outcome: Outcome | None = getattr(gate, "outcome", None)
    kind = outcome.kind if outcome else gate.status
    return Ended(
        kind=kind,
        state="approved" if kind in ("edited", "answered") else kind,
        by=deciders(outcome) if outcome else "",
        at=gate.closed_at,
        then=sentence(outcome) if outcome else "",
        icon=ICONS.get(kind, "hold"),
        said=chosen(gate, outcome) if outcome else "",
    )


def chosen(gate: Gate, outcome: Outcome) -> str:
    """The label of the answer to a recovery gate's question; empty where there was no question."""
    question, answer = gate.asked.question, outcome.answered
    if not question or not answer:
        return ""
    labels = {choice["id"]: choice.get("label", choice["id"]) for choice in question["choices"]}
    return str(labels.get(answer["choice"], answer["choice"]))


def deciders(outcome: Outcome) -> str:
    """The people whose decisions counted, by name."""
    people = [decision.user for decision in outcome.decisions.all()]
    names = list(dict.fromkeys(person.get_full_name() or person.get_username() for person in people))
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def sentence(outcome: Outcome) -> str:
    """What the run does now."""
    effects = [grant.effect for grant in outcome.grants.all()]
    held = ", only if what was observed is still so" if outcome.counted else ""
    runs = f"The run goes on: {', '.join(effects)} may run, once each{held}." if effects else "The run goes on."
    back = f"The run goes back to {outcome.back_to}; the agent reads the feedback."
    return {
        "approved": runs,
        "edited": f"{runs} With the edited values.",
        "answered": "The run does what the answer says.",
        "rejected": back if outcome.then == "back" else "The run stops.",
        "expired": runs
        if outcome.to_run
        else "Nothing runs. The agent is told that nobody answered, which is not a no.",
        "withdrawn": f"Nothing runs. {outcome.words or 'The run no longer needed an answer.'}",
    }[outcome.kind]
