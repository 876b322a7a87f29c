"""Changes inside one action that the reader leaves out: stretches of a long text, and single fields.

A box beside a stretch of a drawn diff leaves that stretch as it was; a box beside a field puts back the value that the
row shows. Either composes an edit of the action, as if it had been typed: it is shown as the reader's own, checked and
bound like any. So a refusal of a part never makes the rest run as it was shown without that part's approval.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from approvals.cards.action import Action
from approvals.cards.drawing import DIFF
from approvals.errors import Problem, make_problem
from approvals.forms import Form, FormField, merging, texts
from approvals.presentation.text import line_diff
from approvals.schema.redact import MASK
from checkpoints.values import json_pointer

STRETCH, BACK = "drop.", "restore."  # before an input's name: numbers of stretches; the text that is put back
TWICE = "You typed here, and also left the same part out. Do one of both."


def name_of(input: str, stretch: int) -> str:
    """Return the name of the box that leaves out one stretch of an input's text."""
    return f"{STRETCH}{input}.{stretch}"


def stretches_in(form: Mapping[str, str], input: str) -> set[int]:
    """Return the numbers of the stretches that are left out of an input's text."""
    start = f"{STRETCH}{input}."
    found = [name.removeprefix(start) for name in form if name.startswith(start)]
    return {int(each) for each in found if each.isascii() and each.isdigit() and len(each) < 6}


def boxes_in(form: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the ticked boxes of one action, whose inputs begin with `prefix`."""
    begins = tuple(mark + prefix + end for mark in (STRETCH, BACK) for end in ("/", "!"))
    exact = BACK + prefix
    return {name: text for name, text in form.items() if name.startswith(begins) or name == exact}


def composed(posted: Mapping[str, str], action: Action, drawn: Form) -> tuple[dict[str, str], list[Problem]]:
    """Return the posted texts with the parts left out, and a problem for each part that was typed over too.

    `drawn`: the action's form with those texts.
    """
    whole = dict(posted)
    faults: list[Problem] = []
    for field in drawn.fields:
        if not takes(field):
            continue
        final = _without(whole, action, field)
        if final is None:
            continue
        text, opposed = merging.three_ways(field.rendered, field.text, final, lines=True)
        if opposed:
            faults.append(make_problem(TWICE, action=action.id, pointer=field.pointer))
        whole[field.name] = field.text if text is None else text
    return whole, faults


def boxed(row: Mapping[str, Any], field: FormField | None, value: Any, posted: Mapping[str, str]) -> dict[str, Any]:
    """Return a row of a diff with the box that puts `value` back into its field; as it is where that cannot be."""
    if field is None or not takes(field) or row["kind"] != "changed" or not texts.shows(field.kind, value):
        return dict(row)
    text, name = texts.written(field.kind, value), BACK + field.name
    if text == field.rendered or MASK in text:
        return dict(row)
    return {**row, "box": {"name": name, "text": text, "ticked": name in posted, "id": f"{field.id}-back"}}


def takes(field: FormField) -> bool:
    """Tell whether a part of a field may be left out: its text carries its value whole, and may be edited."""
    return field.open and field.exact and field.kind not in ("secret", "file")


def _without(posted: Mapping[str, str], action: Action, field: FormField) -> str | None:
    """Return the field's text without what is left out; None where nothing is."""
    back = posted.get(BACK + field.name)
    if back is not None:
        return back
    dropped = stretches_in(posted, field.name)
    before = _before(action, field.pointer) if dropped else None
    now = json_pointer.get(action.arguments, field.pointer)
    if before is None or not isinstance(now, str):
        return None
    return line_diff.without(before, now, dropped)


def _before(action: Action, place: str) -> str | None:
    """Return the text that the one at a pointer takes the place of; None where no drawing says so."""
    for each in action.draws:
        if each.kind == DIFF and each.at == place:
            found = json_pointer.get(action.arguments, each.before) if each.before else each.was
            return found if isinstance(found, str) else None
    return None
