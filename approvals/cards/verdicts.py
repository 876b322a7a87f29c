"""Reads a decision by action, and checks it against the current proposal. Pure.

Approving an action approves it as the gate asks it now, with edits by others. Where others refused it, or answered in
its place, the same verdict agrees with them; approving it lets it run after all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from approvals.errors import Invalid, Problem, make_problem
from approvals.schema import validate
from approvals.schema.walk import is_list
from checkpoints.errors import ValueRefused
from checkpoints.runs.plans import PlanSpec
from checkpoints.values import canonical_json, json_pointer
from checkpoints.values.ops import Append
from checkpoints.values.patch import are_same

from .action import APPROVE, EDIT, LATER, REJECT, RESPOND, SETTLES, VERDICTS, Action, SettledAction
from .card import Card

LIMIT = 20_000  # characters of a reason, and of a response in words
PARTS = ("verdict", "arguments", "reason", "response")


@dataclass(frozen=True, kw_only=True)
class ActionVerdict:
    """One person's verdict on one action."""

    verdict: str
    arguments: Any = None  # of an edit
    reason: str = ""  # of a rejection
    response: Any = None


@dataclass(frozen=True, kw_only=True)
class ActionVerdicts:
    """One person's decision on every action of a card, by id and in the card's order."""

    said: Mapping[str, ActionVerdict]

    @property
    def rejects_all(self) -> bool:
        return all(each.verdict == REJECT for each in self.said.values())

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the new arguments of the actions that are edited."""
        return {name: each.arguments for name, each in self.said.items() if each.verdict == EDIT}

    @property
    def verdicts(self) -> dict[str, str]:
        return {name: each.verdict for name, each in self.said.items()}

    def settles(self, card: Card, *, by: str) -> Card:
        """Return the card with what this decision settles; a repeated verdict keeps the name of its first author."""
        return replace(card, actions=[_settled(action, self.said[action.id], by) for action in card.actions])


def read(said: Mapping[str, Any], card: Card) -> ActionVerdicts:
    """Read the decision, which has to cover every action. Raises Invalid with every fault at once."""
    if card.question is not None:
        raise Invalid([make_problem("The gate asks a question: answer it.", pointer="/actions")])
    faults = [make_problem("The gate has no such action.", action=name) for name in said if card.action(name) is None]
    found = {}
    for action in card.actions:
        each = said.get(action.id)
        if each is None:
            faults.append(make_problem("Choose a verdict for this action.", action=action.id, part="verdict"))
            continue
        wrong = _form_faults(action, each)
        faults += wrong
        if not wrong:
            found[action.id] = ActionVerdict(**each)
    if not faults:
        faults = _faults(ActionVerdicts(said=found), card)
    if faults:
        raise Invalid(faults)
    return ActionVerdicts(said=found)


def written(plan: PlanSpec, action: Action) -> dict[str, Any]:
    """Return the field that an answer in place of an action's effect writes; to a list it is appended."""
    effect = next((step for step in plan.steps if step.name == action.effect), None)
    if action.settled is None or action.settled.verdict != RESPOND or effect is None or not effect.responds:
        return {}
    listed = is_list(plan.state_schema, json_pointer.join("", effect.responds))
    return {effect.responds: Append([action.settled.response]) if listed else action.settled.response}


def of_card(card: Card, asked: Card) -> dict[str, str]:
    """Return action id -> the verdict that a proposal implies, compared with the agent's card `asked`."""
    return {action.id: _verdict_of(action, asked.action(action.id)) for action in card.actions}


def _verdict_of(action: Action, asked: Action | None) -> str:
    as_asked = asked is not None and are_same(action.arguments, asked.arguments)
    return action.settled_as or (APPROVE if as_asked else EDIT)


def _settled(action: Action, each: ActionVerdict, by: str) -> Action:
    if each.verdict not in SETTLES:
        return replace(action, settled=None)
    made = SettledAction(verdict=each.verdict, by=by, reason=each.reason, response=each.response)
    before = action.settled
    return action if _repeats(action, each) or made.same(before) else replace(action, settled=made)


def _repeats(action: Action, each: ActionVerdict) -> bool:
    """Tell whether this repeats the current verdict without a reason or response of its own."""
    silent = not each.reason and each.response in (None, "")
    return silent and action.settled_as == each.verdict


def _form_faults(action: Action, each: Any) -> list[Problem]:
    """List the faults in the form of a verdict on an action."""
    if not isinstance(each, Mapping) or each.get("verdict") not in VERDICTS:
        words = f"Choose one of {', '.join(action.verdicts)}."
        return [make_problem(words, action=action.id, part="verdict")]
    strange = sorted(set(each) - set(PARTS))
    faults = [make_problem(f"A verdict has no part {name!r}.", action=action.id) for name in strange]
    if not isinstance(each.get("reason", ""), str):
        faults.append(make_problem("Write the reason as text.", action=action.id, part="reason"))
    verdict = each["verdict"]
    for part, of, words in (
        ("arguments", EDIT, "Only an edit takes new values."),
        ("reason", REJECT, "Only a rejection takes a reason."),
        ("response", RESPOND, "Only an answer in its place takes a response."),
    ):
        if verdict != of and each.get(part) not in (None, ""):
            faults.append(make_problem(words, action=action.id, part="" if part == "arguments" else part))
    return faults


def _faults(word: ActionVerdicts, card: Card) -> list[Problem]:
    faults = []
    for action in card.actions:
        each = word.said[action.id]
        if not action.takes(each.verdict):
            words = f"This action does not take {each.verdict}. Choose one of {', '.join(action.verdicts)}."
            faults.append(make_problem(words, action=action.id, part="verdict"))
        elif missing := wordless(action, each, all_rejected=word.rejects_all):
            faults += missing
        elif each.verdict == RESPOND and not _repeats(action, each):
            faults += _response_faults(action, each.response)
        if len(each.reason) > LIMIT:
            faults.append(make_problem(_too_long(), action=action.id, part="reason"))
    if not faults and all(each.verdict == LATER for each in word.said.values()):
        words = "Decide about at least one action; the others may be decided later."
        faults.append(make_problem(words, action=card.actions[0].id, part="verdict"))
    return faults


def wordless(action: Action, each: ActionVerdict, *, all_rejected: bool) -> list[Problem]:
    """List the fault of a verdict without the reason or response that the agent needs to go on without the effect."""
    if _repeats(action, each):
        return []
    if each.verdict == REJECT and not each.reason.strip() and not all_rejected:
        return [make_problem("Say why; the agent reads it.", action=action.id, part="reason")]
    if each.verdict == RESPOND and each.response in (None, ""):
        return [make_problem("Write what the agent gets in its place.", action=action.id, part="response")]
    return []


def _too_long() -> str:
    return f"Write at most {LIMIT:,} characters."


def _response_faults(action: Action, response: Any) -> list[Problem]:
    try:
        canonical_json.encode_canonical(response)
    except ValueRefused as refused:
        return [make_problem(refused.reason, action=action.id, pointer=refused.pointer, part="response")]
    if not action.response:
        if not isinstance(response, str):
            return [make_problem("Write the response as text.", action=action.id, part="response")]
        too_long = len(response) > LIMIT
        return [make_problem(_too_long(), action=action.id, part="response")] * too_long
    found = validate.faults_of(action.response, response)
    return [make_problem(said, action=action.id, pointer=place, part="response") for place, said in found]
