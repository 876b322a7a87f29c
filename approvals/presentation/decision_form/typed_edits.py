"""Reads what was typed into a decision's form, against the card that the form was drawn from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from approvals import forms
from approvals.cards.card import Card
from approvals.errors import Problem, make_problem
from approvals.forms import merging
from checkpoints.errors import ValueRefused
from checkpoints.values import canonical_json
from checkpoints.values.patch import are_same

from . import actions, left_out, whole_state
from .actions import TypedDecision

EDITS = ("args.", left_out.STRETCH, left_out.BACK)  # begin the names of what edits an action


def read(form: Mapping[str, str], card: Card) -> tuple[dict[str, Any], dict[str, str], list[Problem]]:
    """Return (new arguments by action id, the texts of changed fields, a problem for each that cannot be read)."""
    arguments: dict[str, Any] = {}
    kept: dict[str, str] = {}
    problems: list[Problem] = []
    for action in card.actions:
        if not action.editable:
            continue
        prefix = actions.prefix(action)
        if merging.is_as_rendered(action.derived.get("rendered", {}), form, prefix):
            kept |= forms.names.display_marks(form, prefix)
            continue
        typed = actions.form_of(action, form)
        texts, twice = left_out.composed(form, action, typed)
        filled = typed if texts == form else actions.form_of(action, texts)
        problems += twice
        problems += [make_problem(said, action=action.id, pointer=place) for place, said in filled.errors.items()]
        if filled.value is not action.arguments and not are_same(filled.value, action.arguments):
            arguments[action.id] = filled.value
        kept |= typed.touched | forms.names.display_marks(form, prefix) | left_out.boxes_in(form, prefix)
    return arguments, kept, problems


def changed_in(form: Mapping[str, str], card: Card) -> list[str]:
    """List the ids of the actions whose fields were changed."""
    arguments, _, problems = read(form, card)
    wrong = {each["action"] for each in problems}
    return [action.id for action in card.actions if action.id in arguments or action.id in wrong]


def without_edits(form: Mapping[str, str]) -> dict[str, str]:
    """Return the form without edits, so that every field is as proposed."""
    return {name: text for name, text in form.items() if name != whole_state.NAME and not name.startswith(EDITS)}


def put_in_place(texts: Mapping[str, str], card: Card) -> tuple[dict[str, Any], list[Problem]]:
    """Read JSON that replaces actions' arguments: (new arguments by action id, problems)."""
    arguments: dict[str, Any] = {}
    problems: list[Problem] = []
    for action_id, text in texts.items():
        action = card.action(action_id)
        if action is None or not action.editable:
            continue
        try:
            value = canonical_json.parse_json(text)
        except ValueRefused as refused:
            place = f" at {refused.pointer}" if refused.pointer else ""
            problems.append(make_problem(f"Write JSON: {refused.reason}{place}.", action=action_id))
            continue
        try:
            value = action.redaction.restore(value, action.arguments)
        except ValueRefused as refused:
            problems.append(make_problem(f"{refused.reason}.", action=action_id, pointer=refused.pointer))
            continue
        if not are_same(value, action.arguments):
            arguments[action_id] = value
    return arguments, problems


def rows(typed: TypedDecision, card: Card) -> list[dict[str, Any]]:
    """List the edit as rows, for a page without a form to keep it in."""
    found: list[dict[str, Any]] = []
    for action_id, arguments in typed.arguments.items():
        action = card.action(action_id)
        found += actions.changes_of(action, action.arguments, arguments) if action else []
    text = typed.posted.get(whole_state.NAME, "")
    unread = [{"pointer": "", "kind": "added", "after": text}] if text and typed.state is None else []
    return [*found, *map(dict, typed.rows), *unread]


def carried_over(posted: Mapping[str, str], card: Card) -> TypedDecision:
    """Read the merged texts, against a card that has changed since they were typed."""
    arguments = {}
    for action in card.actions:
        if action.editable:
            filled = actions.form_of(action, posted)
            if filled.value is not action.arguments:
                arguments[action.id] = filled.value
    return TypedDecision(posted=posted, arguments=arguments)
