"""Describes how a gate ended: by whom, how, and what became of it. Expired and withdrawn are not rejected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.cards.action import Action
from approvals.consequences.outcome_fates import OutcomeFate
from approvals.english import join_names
from approvals.models import Gate, Outcome
from checkpoints import actors
from checkpoints.runs.plans import PlanSpec

from . import fate_words
from .fate_words import FateWords

VERBS = {**dict(Outcome.Kind.choices), "mixed": "Decided"}  # its actions are told one by one
ICONS = {
    "approved": "check",
    "edited": "pencil",
    "mixed": "pencil",
    "rejected": "x",
    "answered": "reply",
    "expired": "clock",
}


# Verdict on one action -> its result in a word, the state that colours it, its icon.
DONE = {
    "approve": "approved",
    "edit": "edited",
    "reject": "rejected",
    "respond": "answered",
    "later": "left for later",
}
STATES = {"approve": "approved", "edit": "edited", "reject": "rejected", "respond": "edited", "later": "open"}
SIGNS = {"approve": "check", "edit": "pencil", "reject": "x", "respond": "reply", "later": "clock"}


@dataclass(frozen=True, kw_only=True)
class ActionOutcome:
    """The outcome of one action."""

    number: int
    action: Action
    verdict: str
    by: str = ""  # the person who refused it, or answered instead
    reason: str = ""
    response: Any = None

    @property
    def word(self) -> str:
        return DONE[self.verdict]

    @property
    def state(self) -> str:
        return STATES[self.verdict]

    @property
    def icon(self) -> str:
        return SIGNS[self.verdict]


@dataclass(frozen=True, kw_only=True)
class GateEnding:
    """The end of one gate, in words."""

    kind: str  # an Outcome.Kind
    state: str  # for [data-status]
    by: str  # a person's name; empty where nobody decided
    at: datetime | None
    then: str  # what became of it, in sentences; empty without a plan
    icon: str
    said: str = ""  # the label of the chosen answer
    actions: Sequence[ActionOutcome] = ()  # the outcome of each, where there are several or not all of them run
    became: FateWords | None = None  # what became of what it let run; None where it let nothing run

    @property
    def words(self) -> str:
        verb = str(VERBS.get(self.kind, "Closed"))
        verb = counted([each.verdict for each in self.actions]).capitalize() if self.kind == "mixed" else verb
        if not self.by or self.kind in ("expired", "withdrawn"):
            return verb
        return f"{verb} by {self.by}"


def ended(gate: Gate, plan: PlanSpec | None = None, *, fate: OutcomeFate | None) -> GateEnding:
    """Describe how a closed gate ended, and with a plan what became of it. Needs its outcome and decisions."""
    outcome: Outcome | None = getattr(gate, "outcome", None)
    kind = outcome.kind if outcome else gate.status
    actions = judged(outcome) if outcome else []
    told = kind == "mixed" or (kind == "edited" and len(actions) > 1)
    return GateEnding(
        kind=kind,
        state="approved" if kind in ("edited", "mixed", "answered") else kind,
        by=deciders(outcome) if outcome else "",
        at=gate.closed_at,
        then=sentence(outcome, plan, fate) if outcome and plan else "",
        icon=ICONS.get(kind, "hold"),
        said=gate.asked.label_of(outcome.answered) if outcome else "",
        actions=actions if told else (),
        became=fate_words.describe_fate(fate, outcome.proposal.card if outcome else gate.asked),
    )


def judged(outcome: Outcome) -> list[ActionOutcome]:
    """List the outcome of each action, in the card's order; [] where nobody decided, or a question was answered."""
    verdicts = outcome.by_action
    if not verdicts:
        return []
    rejected = outcome.kind == "rejected"
    found = []
    for number, action in enumerate(outcome.proposal.card.actions, 1):
        settled = None if rejected else action.masked_settled
        found.append(
            ActionOutcome(
                number=number, action=action, verdict=verdicts[action.id],
                by=settled.by if settled else "", reason=settled.reason if settled else "",
                response=settled.response if settled else None,
            )
        )  # fmt: skip
    return found


def counted(verdicts: Sequence[str]) -> str:
    """Count the verdicts, in a fixed order: `approved 1, edited 1, rejected 2`."""
    return ", ".join(f"{word} {verdicts.count(name)}" for name, word in DONE.items() if name in verdicts)


def deciders(outcome: Outcome) -> str:
    """Name the people whose decisions counted, or the rule that approved."""
    if outcome.by_rule:
        return outcome.by_name
    return join_names(actors.of_user(decision.user).name for decision in outcome.decisions.all())


def sentence(outcome: Outcome, plan: PlanSpec, fate: OutcomeFate | None) -> str:
    """Say what the run did then, or does next."""
    if fate and fate.grants:
        runs = fate_words.say_fate(fate, plan, outcome.proposal.card, checked=bool(outcome.counted))
    else:
        runs = "The run continues."
    feedback = "with the feedback" if outcome.words else "without feedback"
    back = f"The run goes back to “{plan.title_of(outcome.back_to)}”, {feedback}."
    return {
        "approved": runs,
        "edited": f"The edited values are used. {runs}",
        "mixed": runs,
        "answered": "The agent continues with this answer.",
        "rejected": back if outcome.then == "back" else "The run stops.",
        "expired": runs if outcome.to_run else "Nobody answered in time, so nothing runs.",
        "withdrawn": f"Nothing runs. {outcome.words or 'This gate is no longer needed.'}",
    }[outcome.kind]
