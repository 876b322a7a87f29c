"""Says in words what became of an outcome: at one gate, in a row, and of many gates decided together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals.cards.card import Card
from approvals.consequences.outcome_fates import ASKED_AGAIN, STATES, OutcomeFate
from approvals.english import listed, quoted
from approvals.models import Gate
from checkpoints.runs.plans import PlanSpec
from checkpoints.values import json_pointer

# State -> its words, the same behind a number, the status that colours it, its icon.
RESULTS: Mapping[str, tuple[object, object, str, str]] = {
    "waiting": (gettext_lazy("Not yet"), gettext_lazy("not yet"), "ahead", "clock"),
    "unreported": (
        gettext_lazy("Not reported by its program yet"), gettext_lazy("not reported yet"), "ahead", "clock",
    ),
    "stopped": (gettext_lazy("Not done: the run failed before"), gettext_lazy("not done"), "rejected", "x"),
    "never": (gettext_lazy("Did not run: the run has ended"), gettext_lazy("did not run"), "expired", "x"),
    "elsewhere": (
        gettext_lazy("Did not run: the run went back to an earlier step"), gettext_lazy("did not run"), "expired",
        "undo",
    ),
    ASKED_AGAIN: (gettext_lazy("Not done, asked again"), gettext_lazy("asked again"), "open", "hold"),
    "intended": (gettext_lazy("Under way"), gettext_lazy("under way"), "running", "play"),
    "done": (gettext_lazy("Done"), gettext_lazy("done"), "approved", "check"),
    "reused": (gettext_lazy("Done before; not repeated"), gettext_lazy("done before"), "approved", "check"),
    "failed": (gettext_lazy("Failed: nothing was done"), gettext_lazy("failed"), "rejected", "x"),
    "unknown": (gettext_lazy("Unknown: it may have happened"), gettext_lazy("unknown"), "open", "unknown"),
    "abandoned": (
        gettext_lazy("Unknown; done again on a person's order"), gettext_lazy("unknown"), "open", "unknown",
    ),
    "undoing": (gettext_lazy("Done; being undone"), gettext_lazy("being undone"), "open", "undo"),
    "undone": (gettext_lazy("Done, and undone later"), gettext_lazy("undone"), "undone", "undo"),
    "kept": (gettext_lazy("Done; the run went another way"), gettext_lazy("done"), "approved", "check"),
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class FateWords:
    """The fate of one outcome, in words. Some are the agent's own: data, never markup."""

    state: str  # of STATES
    words: str
    again: int = 0  # the gate that asks again; 0: none
    answered: bool = False  # whether that one is closed
    why: str = ""  # why it does
    open: bool = False  # whether it may still change

    @property
    def status(self) -> str:
        """Return the status that colours it."""
        return RESULTS[self.state][2]

    @property
    def icon(self) -> str:
        return RESULTS[self.state][3]


def describe_fate(fate: OutcomeFate | None, card: Card) -> FateWords | None:
    """Say in a few words what became of an outcome; None where nothing was let run. `card`: what was decided on."""
    if fate is None or not fate.state:
        return None
    again = fate.again.pk if fate.again and fate.state == ASKED_AGAIN else 0
    why = why_again(fate, card) if again else ""
    words = _("Asked again in gate %(gate)s") % {"gate": again} if again else str(RESULTS[fate.state][0])
    return FateWords(
        state=fate.state, words=": ".join(filter(None, [words, why])), again=again, why=why, open=fate.open,
        answered=bool(fate.again and fate.again.status != Gate.Status.OPEN),
    )  # fmt: skip


def why_again(fate: OutcomeFate, card: Card) -> str:
    """Say why the same is asked again: which safety check failed, what changed, or that it failed; "" if unknown."""
    reopened = fate.reopened or {}
    if reopened.get("failed"):
        return _("it failed")
    rows = reopened.get("changes", [])
    seen = {json_pointer.tokens(row["pointer"])[0] for row in rows if row["of"] == "world"}
    checks = [each for each in card.preconditions if each.observes in seen]
    if checks:
        words = [" ".join(filter(None, each.around())).rstrip(" :.") for each in checks]
        return _("%(checks)s no longer holds") % {"checks": quoted(words)}
    return _("what would run has changed") if rows else ""


def say_fate(fate: OutcomeFate, plan: PlanSpec, card: Card, *, checked: bool) -> str:
    """Say in sentences what became of each effect. `checked`: safety checks count."""
    by_state: dict[str, list[str]] = {}
    for each in fate.grants:
        by_state.setdefault(each.state, []).append(plan.title_of(each.grant.effect))
    said = []
    for state, titles in by_state.items():
        if state == "waiting" and checked:
            said.append(_("Next: %(steps)s, if the safety checks still hold.") % {"steps": quoted(titles)})
        elif state == "waiting":
            said.append(_("Next: %(steps)s.") % {"steps": quoted(titles)})
        else:
            word = str(RESULTS[state][0])
            said.append(f"{quoted(titles)}: {word[:1].lower()}{word[1:]}.")
    if fate.state == ASKED_AGAIN and (why := why_again(fate, card)):
        said.append(f"{why[:1].upper()}{why[1:]}.")
    return " ".join(said)


def count_fates(fates: Iterable[FateWords]) -> str:
    """Count what became of gates decided together: `3 done, 4 asked again: “the balance is still” no longer holds`."""
    every = list(fates)
    counted: Counter[str] = Counter()
    for state in STATES[::-1]:
        counted[str(RESULTS[state][1])] += sum(each.state == state for each in every)
    words = ", ".join(f"{number} {word}" for word, number in counted.items() if number)
    why = listed(each.why for each in every if each.why)
    return f"{words}: {why}" if why else words
