"""Says in words what became of an outcome: at one gate, in a row, and of many gates decided together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from approvals.cards.card import Card
from approvals.consequences.outcome_fates import ASKED_AGAIN, STATES, OutcomeFate
from approvals.english import join_names, quote_titles
from approvals.models import Gate
from checkpoints.runs.plans import PlanSpec
from checkpoints.values import json_pointer

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
