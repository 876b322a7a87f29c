"""Makes the proposal that a decision by action asks for. Reads no tables.

Edits are in its arguments, refusals and answers in its actions as `settled`: all of it is in the proposal's body, so
that the digest covers it and others approve the whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from approvals.cards import verdicts
from approvals.cards.action import RESPOND, Action
from approvals.cards.card import Card
from approvals.cards.verdicts import ActionVerdicts
from approvals.errors import Invalid, Problem, make_problem
from approvals.schema.walk import is_list
from checkpoints.models import Plan
from checkpoints.runs.plans import spec_of
from checkpoints.values import json_pointer, patch
from checkpoints.values.patch import are_same

from . import edit as editing
from . import validators
from .edit import CurrentProposal, NextProposal
from .submission import Submission, Verdict

QUOTED = 80  # characters of a title in somebody's comment
UNCHANGED = "Nothing of it is different from what is proposed; approve it, or change a value."


def mixed(current: CurrentProposal, by_action: ActionVerdicts, *, by: str) -> NextProposal:
    """Apply the decision to the current proposal. Raises EditRefused and Invalid with every problem at once.

    A refused action loses others' edits: nothing of it is written.
    """
    card, saved = current.card, current.saved
    _refuse_unchanged(card, by_action)
    settled = _checked(by_action.settles(card, by=by), current.plan, saved)
    state = _without_refused(settled, saved, current.state)
    asked = settled.with_arguments(editing.arguments_in(state, settled))
    base = replace(current, card=asked, patch=patch.diff(saved, state))
    if by_action.arguments:
        made = editing.edited(base, by_action.arguments)
    else:
        made = NextProposal(card=_as_left(base, card, state), patch=list(base.patch))
    pairs = zip(made.card.actions, card.actions, strict=True)
    changed = tuple(new.id for new, old in pairs if not are_same(new.to_json(), old.to_json()))
    return replace(made, changed=changed, kind=named(by_action))


def read(submission: Submission, card: Card) -> tuple[Submission, ActionVerdicts | None]:
    """Read the verdicts by action of a submission, None where it has none.

    One that rejects all actions becomes a rejection of the gate, with the reasons in its comment.
    """
    if submission.verdict != Verdict.MIXED:
        return submission, None
    by_action = verdicts.read(submission.verdicts or {}, card)
    if not by_action.rejects_all:
        return submission, by_action
    reasons = [(action, by_action.said[action.id].reason) for action in card.actions]
    comment = with_reasons(submission.comment, card, reasons)
    return replace(submission, verdict=Verdict.REJECT, verdicts=None, comment=comment), None


def with_reasons(comment: str, card: Card, reasons: Sequence[tuple[Action, str]]) -> str:
    """Return a comment with the reasons for each action, by its title where there are several.

    A title may be anybody's words: it stays one short line, in quotation marks.
    """
    several = len(card.actions) > 1
    said = [f"{quoted(action)}: {why}" if several else why for action, why in reasons if why.strip()]
    return "\n\n".join(filter(None, [comment, *said]))


def quoted(action: Action) -> str:
    """Quote an action's title for a comment."""
    line = " ".join(re.sub("[“”]", "", action.title).split()) or action.id
    return f"“{line if len(line) <= QUOTED else line[:QUOTED] + '…'}”"


def named(by_action: ActionVerdicts) -> Verdict:
    """Return the one verdict that sums up those of all actions."""
    said = set(by_action.verdicts.values())
    if said <= {Verdict.APPROVE, Verdict.EDIT}:
        return Verdict.EDIT if Verdict.EDIT in said else Verdict.APPROVE
    return Verdict.MIXED


def _refuse_unchanged(card: Card, by_action: ActionVerdicts) -> None:
    edited = by_action.arguments
    faults = [
        make_problem(UNCHANGED, action=action.id)
        for action in card.actions
        if action.id in edited and action.settled is None and are_same(action.arguments, edited[action.id])
    ]
    if faults:
        raise Invalid(faults)


def _without_refused(card: Card, saved: Mapping[str, Any], state: dict[str, Any]) -> dict[str, Any]:
    """Return the proposed state without people's edits in the actions that do not run."""
    for action in sorted(card.actions, key=lambda each: len(each.pointer)):
        if action.settled is not None and action.pointer and json_pointer.has_value(saved, action.pointer):
            state = _put(state, action.pointer, json_pointer.find_value(saved, action.pointer))
    live = [action for action in card.actions if action.settled is None and action.pointer]
    for action in sorted(live, key=lambda each: len(each.pointer)):
        state = _put(state, action.pointer, action.arguments)
    return state


def _put(state: dict[str, Any], pointer: str, value: Any) -> dict[str, Any]:
    return state if are_same(json_pointer.find_value(state, pointer), value) else patch.put(state, pointer, value)


def _as_left(current: CurrentProposal, before: Card, state: dict[str, Any]) -> Card:
    """Return the card where nothing more is edited; the state is validated again where a refusal took back an edit."""
    asked = current.card
    if all(are_same(new.arguments, old.arguments) for new, old in zip(asked.actions, before.actions, strict=True)):
        return asked
    editing.normal(current.plan, state, partial(editing.located, asked))
    return editing.redrawn(current, state)


def _checked(card: Card, plan: Plan, saved: Mapping[str, Any]) -> Card:
    """Return the card with its responses in the form that the agent's own model gives them. Raises Invalid."""
    known = {step.name: step.responds for step in spec_of(plan).steps}
    actions: list[Action] = []
    faults: list[Problem] = []
    for action in card.actions:
        made, wrong = _normal(action, known.get(action.effect, ""), plan, saved)
        actions.append(made)
        faults += wrong
    if faults:
        raise Invalid(faults)
    return replace(card, actions=actions)


def _normal(action: Action, field: str, plan: Plan, saved: Mapping[str, Any]) -> tuple[Action, Sequence[Problem]]:
    """Return the action with its response, if any, in normal form in the state's `field`, and what is wrong with it."""
    if not field or action.settled is None or action.settled.verdict != RESPOND:
        return action, []
    response, at = action.settled.response, json_pointer.join("", field)
    listed = is_list(spec_of(plan).state_schema, at)
    value = [*(saved.get(field) or []), response] if listed else response
    try:
        normal, faults = validators.validated(plan, {**saved, field: value})
    except validators.NoValidator as unknown:
        raise Invalid([make_problem(str(unknown))]) from unknown
    mine = [fault for fault in faults if json_pointer.covers_place(at, fault["pointer"])]
    if mine:
        return action, [make_problem(fault["message"], action=action.id, part="response") for fault in mine]
    final = normal[field][-1] if listed else normal[field]
    return replace(action, settled=replace(action.settled, response=final)), []
