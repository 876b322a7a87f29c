"""The verdict choice beside each of several actions, with what was already decided about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from approvals.cards.action import (
    APPROVE,
    EDIT,
    LATER,
    REJECT,
    RESPOND,
    SETTLES,
    VERDICTS,
    Action,
    SettledAction,
)
from approvals.cards.card import Card
from approvals.errors import Problem, make_problem
from checkpoints.errors import ValueRefused
from checkpoints.values import canonical_json

# Verdict -> (label of its choice, icon, key).
CHOICES = {
    APPROVE: ("Approve", "check", "a"),
    EDIT: ("Edit", "pencil", "e"),
    REJECT: ("Reject", "x", "r"),
    RESPOND: ("Answer instead", "reply", "p"),
    LATER: ("Decide later", "clock", "l"),
}
ANSWERED = {EDIT: ("Answer", "reply", "e")}  # where the action only asks
UNSAID = "Choose a verdict for this action."
UNSENT = "You changed a field but chose Approve. Send your change, or restore the original value."
UNFILLED = "Nothing has changed yet. Fill in what is required."
UNCHANGED = "Edit is selected but nothing has changed. Change a field or choose Approve."
CONTRADICTED = "You chose Approve for all actions, and something else for this one. Choose one of the two."


@dataclass(frozen=True, kw_only=True)
class ChosenVerdict:
    """The verdict on one action in a form, as it was typed."""

    verdict: str = ""
    reason: str = ""
    response: str = ""

    def hiding(self, action: Action) -> ChosenVerdict:
        """Return it without a response that may hold a secret, which no page shows again."""
        return replace(self, response="") if action.response_redaction else self

    @property
    def words(self) -> str:
        """Return the words that go with the verdict."""
        return {REJECT: self.reason, RESPOND: self.response}.get(self.verdict, "")

    @property
    def sends_fields(self) -> bool:
        """Tell whether the action's fields are sent, as they are only if the action is to run."""
        return self.verdict not in SETTLES


@dataclass(frozen=True, kw_only=True)
class Ballot:
    """The choice beside one action."""

    id: str
    choices: Mapping[str, tuple[str, str, str]]  # those of CHOICES that it takes
    chosen: ChosenVerdict
    settled: SettledAction | None = None  # how others settled it, if that still counts
    errors: Mapping[str, str] = field(default_factory=dict)  # by part: verdict, reason, response

    @property
    def label(self) -> str:
        return self.choices[self.chosen.verdict][0] if self.chosen.verdict in self.choices else ""


def has_ballots(card: Card) -> bool:
    """Tell whether each action has a choice of its own: there are several, or the only one may be answered instead."""
    return card.question is None and (len(card.actions) > 1 or any(each.takes(RESPOND) for each in card.actions))


def ballot(action: Action, said: ChosenVerdict | None, errors: Sequence[Problem]) -> Ballot:
    """Return the choice beside an action. `said`: what was chosen there so far."""
    said = said.hiding(action) if said else ChosenVerdict(verdict=action.settled_as)
    offered = CHOICES | ANSWERED if action.asks_only else CHOICES
    choices = {name: words for name, words in offered.items() if action.takes(name)}
    mine = {each["part"]: each["message"] for each in errors if each["action"] == action.id and each["part"]}
    return Ballot(id=action.id, choices=choices, chosen=said, settled=action.settled, errors=mine)


def chosen_in(form: Mapping[str, str], card: Card) -> dict[str, ChosenVerdict]:
    """Return the verdicts in a posted form, by action id."""
    return {
        action.id: ChosenVerdict(
            verdict=form.get(f"verdict.{action.id}", ""),
            reason=form.get(f"reason.{action.id}", "").replace("\r\n", "\n"),
            response=form.get(f"response.{action.id}", "").replace("\r\n", "\n"),
        )
        for action in card.actions
        if any(f"{part}.{action.id}" in form for part in ("verdict", "reason", "response"))
    }


def said_of(
    action: Action, chosen: ChosenVerdict, arguments: Any, *, changed: bool
) -> tuple[dict[str, Any], list[Problem]]:
    """Return (one action's verdict, as `Submission` takes it; problems). `arguments`: read from its fields."""
    verdict = chosen.verdict
    if verdict not in VERDICTS:
        return {}, [make_problem(UNSAID, action=action.id, part="verdict")]
    if verdict == APPROVE and changed:
        return {}, [make_problem(UNSENT, action=action.id, part="verdict")]
    if verdict == EDIT and not changed:
        return {}, [make_problem(UNCHANGED, action=action.id, part="verdict")]
    said: dict[str, Any] = {"verdict": verdict}
    if verdict == EDIT:
        said["arguments"] = arguments
    elif verdict == REJECT and chosen.reason:
        said["reason"] = chosen.reason
    elif verdict == RESPOND and chosen.response:
        try:
            said["response"] = response_of(action, chosen.response)
        except ValueRefused as refused:
            return {}, [make_problem(f"Write JSON: {refused.reason}.", action=action.id, part="response")]
    return said, []


def so_far(
    action: Action, chosen: ChosenVerdict, arguments: Mapping[str, Any], errors: Sequence[Problem]
) -> dict[str, Any]:
    """Return the choice for an action so far as a verdict, so that its impact can be previewed.

    A reason that is still missing does not change the result, and an action without a choice stays as it is.
    """
    wrong = any(one["action"] == action.id and not one["part"] for one in errors)
    if chosen.verdict in ("", EDIT) and action.id in arguments and not wrong:
        return {"verdict": EDIT, "arguments": arguments[action.id]}
    if chosen.verdict == RESPOND and (chosen.response or takes_text(action)):
        with suppress(ValueRefused):
            return {"verdict": RESPOND, "response": response_of(action, chosen.response or "…")}
    if chosen.verdict == LATER:
        return {"verdict": LATER}
    if not chosen.sends_fields:
        return {"verdict": REJECT, "reason": chosen.reason or "…"}
    settled = action.settled.verdict if action.settled and not chosen.verdict else APPROVE
    return {"verdict": settled}


def response_of(action: Action, text: str) -> Any:
    """Read a typed response as its value. Raises ValueRefused."""
    return text if takes_text(action) else canonical_json.parse_json(text)


def takes_text(action: Action) -> bool:
    """Tell whether a response is typed as plain text, and not as JSON."""
    return not action.response or action.response.get("type") == "string"
