"""Describes how gates ended: by whom, how, and what became of what was let run, at one gate and of many together.

Expired and withdrawn are not rejected.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from approvals.cards.action import Action
from approvals.cards.card import Card
from approvals.consequences.performed import ASKED_AGAIN, STATES, OutcomeFate
from approvals.english import join_names, quote_titles
from approvals.models import Gate, Outcome
from checkpoints import actors
from checkpoints.runs.plans import PlanSpec
from checkpoints.values import json_pointer

VERBS = {**dict(Outcome.Kind.choices), "mixed": "Decided"}  # its actions are told one by one
ICONS = {
    "approved": "check",
    "edited": "pencil",
    "mixed": "pencil",
    "rejected": "x",
    "answered": "reply",
    "expired": "clock",
}


# Verdict on one action -> (its result in a word, the state that colours it, its icon).
DONE = {
    "approve": ("approved", "approved", "check"),
    "edit": ("edited", "edited", "pencil"),
    "reject": ("rejected", "rejected", "x"),
    "respond": ("answered", "edited", "reply"),
    "later": ("left for later", "open", "clock"),
}
# State -> its words, the same behind a number, the status that colours it, its icon.
RESULTS: Mapping[str, tuple[str, str, str, str]] = {
    "waiting": ("Not yet", "not yet", "ahead", "clock"),
    "unreported": (
        "Not reported by its program yet", "not reported yet", "ahead", "clock",
    ),
    "stopped": ("Not done: the run failed before", "not done", "rejected", "x"),
    "never": ("Did not run: the run has ended", "did not run", "expired", "x"),
    "elsewhere": (
        "Did not run: the run went back to an earlier step", "did not run", "expired",
        "undo",
    ),
    ASKED_AGAIN: ("Not done, asked again", "asked again", "open", "hold"),
    "intended": ("Under way", "under way", "running", "play"),
    "done": ("Done", "done", "approved", "check"),
    "reused": ("Done before; not repeated", "done before", "approved", "check"),
    "failed": ("Failed: nothing was done", "failed", "rejected", "x"),
    "unknown": ("Unknown: it may have happened", "unknown", "open", "unknown"),
    "abandoned": (
        "Unknown; done again on a person's order", "unknown", "open", "unknown",
    ),
    "undoing": ("Done; being undone", "being undone", "open", "undo"),
    "undone": ("Done, and undone later", "undone", "undone", "undo"),
    "kept": ("Done; the run went another way", "done", "approved", "check"),
}  # fmt: skip


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
        return DONE[self.verdict][0]

    @property
    def state(self) -> str:
        return DONE[self.verdict][1]

    @property
    def icon(self) -> str:
        return DONE[self.verdict][2]


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
        became=describe_fate(fate, outcome.proposal.card if outcome else gate.asked),
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
    return ", ".join(f"{word} {verdicts.count(name)}" for name, (word, *_) in DONE.items() if name in verdicts)


def deciders(outcome: Outcome) -> str:
    """Name the people whose decisions counted, or the rule that approved."""
    if outcome.by_rule:
        return outcome.by_name
    return join_names(actors.of_user(decision.user).name for decision in outcome.decisions.all())


def sentence(outcome: Outcome, plan: PlanSpec, fate: OutcomeFate | None) -> str:
    """Say what the run did then, or does next."""
    if fate and fate.grants:
        runs = say_fate(fate, plan, outcome.proposal.card, checked=bool(outcome.counted))
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


@dataclass(frozen=True, kw_only=True)
class FateWords:
    """The fate of one outcome, in words. Some are the agent's own: data, never markup."""

    state: str  # of STATES
    words: str
    status: str  # that colours it
    icon: str
    again: int = 0  # the gate that asks again; 0: none
    answered: bool = False  # whether that one is closed
    why: str = ""  # why it does
    open: bool = False  # whether it may still change


def describe_fate(fate: OutcomeFate | None, card: Card) -> FateWords | None:
    """Say in a few words what became of an outcome; None where nothing was let run. `card`: what was decided on."""
    if fate is None or not fate.state:
        return None
    again = fate.again.pk if fate.again and fate.state == ASKED_AGAIN else 0
    why = why_again(fate, card) if again else ""
    result, _, status, icon = RESULTS[fate.state]
    words = f"Asked again in gate {again}" if again else result
    return FateWords(
        state=fate.state, words=": ".join(filter(None, [words, why])), again=again, why=why, open=fate.open,
        status=status, icon=icon, answered=bool(fate.again and fate.again.status != Gate.Status.OPEN),
    )  # fmt: skip


def why_again(fate: OutcomeFate, card: Card) -> str:
    """Say why the same is asked again: which safety check failed, what changed, or that it failed; "" if unknown."""
    reopened = fate.reopened or {}
    if reopened.get("failed"):
        return "it failed"
    rows = reopened.get("changes", [])
    seen = {json_pointer.split_pointer(row["pointer"])[0] for row in rows if row["of"] == "world"}
    checks = [each for each in card.preconditions if each.observes in seen]
    if checks:
        words = [" ".join(filter(None, each.around())).rstrip(" :.") for each in checks]
        return f"{quote_titles(words)} no longer holds"
    return "what would run has changed" if rows else ""


def say_fate(fate: OutcomeFate, plan: PlanSpec, card: Card, *, checked: bool) -> str:
    """Say in sentences what became of each effect. `checked`: safety checks count."""
    by_state: dict[str, list[str]] = {}
    for each in fate.grants:
        by_state.setdefault(each.state, []).append(plan.title_of(each.grant.effect))
    said = []
    for state, titles in by_state.items():
        if state == "waiting":
            said.append(f"Next: {quote_titles(titles)}{', if the safety checks still hold' if checked else ''}.")
        else:
            word = RESULTS[state][0]
            said.append(f"{quote_titles(titles)}: {word[:1].lower()}{word[1:]}.")
    if fate.state == ASKED_AGAIN and (why := why_again(fate, card)):
        said.append(f"{why[:1].upper()}{why[1:]}.")
    return " ".join(said)


def count_fates(fates: Iterable[FateWords]) -> str:
    """Count what became of gates decided together: `3 done, 4 asked again: “the balance is still” no longer holds`."""
    every = list(fates)
    counted: Counter[str] = Counter()
    for state in STATES[::-1]:
        counted[RESULTS[state][1]] += sum(each.state == state for each in every)
    words = ", ".join(f"{number} {word}" for word, number in counted.items() if number)
    why = join_names(each.why for each in every if each.why)
    return f"{words}: {why}" if why else words
