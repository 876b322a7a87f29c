"""Lists the faults of a form, with links to its fields. The errors are shown beside the fields as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from approvals.decisions.edit_state import PART
from approvals.forms import Form, FormNode, ItemRows

from .actions import ActionSheet, AnswerForm, TypedDecision


@dataclass(frozen=True, kw_only=True)
class FormFault:
    """One fault. `id`: that of the input or the part of the form that it is about; empty for none."""

    message: str
    id: str = ""
    label: str = ""


NOWHERE: tuple[str, str] = ("", "")
# Pointer -> (id, label) of a rejection's own parts on the page.
OF_REJECTION: dict[str, tuple[str, str]] = {
    "/comment": ("feedback", "Reason"),
    "/then": ("then", "What happens next"),
}


def faults(
    sheets: Sequence[ActionSheet], answers: Sequence[AnswerForm], typed: TypedDecision, *, rejects: bool = False
) -> list[FormFault]:
    """List every fault of the typed values, in the order of the page; those that concern no field come last."""
    found: list[FormFault] = []
    for sheet in sheets:
        if sheet.form is not None and (sheet.ballot is None or sheet.ballot.chosen.sends_fields):
            found += of_form(sheet.form)
        found += _of_sheet(sheet)
    for answer in answers:
        found += of_form(answer.form) if answer.form is not None else ()
        found += [FormFault(message=said) for said in answer.errors]
    known = {sheet.action.id for sheet in sheets}
    whole = [each for each in typed.errors if each["part"] == PART]
    found += [FormFault(message=e["message"], id="whole-state", label=e["pointer"] or "Whole state") for e in whole]
    placed = {each.message for each in found}
    loose = [e for e in typed.errors if e["action"] not in known and e["message"] not in placed and e["part"] != PART]
    places = OF_REJECTION if rejects else {}
    at = [(e["message"], *places.get(e["pointer"], NOWHERE)) for e in loose]
    return found + [FormFault(message=message, id=place, label=label) for message, place, label in at]


def _of_sheet(sheet: ActionSheet) -> Iterator[FormFault]:
    """Yield the faults of an action outside its form, and of the verdict on it."""
    whole, label = f"action-{sheet.action.id}", sheet.named
    yield from (FormFault(message=said, id=whole, label=label) for said in sheet.errors)
    for part, said in sheet.ballot.errors.items() if sheet.ballot else ():
        place = whole if part == "verdict" else f"{part}-{sheet.number}"
        yield FormFault(message=said, id=place, label=label)


def of_form(form: Form) -> Iterator[FormFault]:
    """Yield the faults of one form."""
    for node, outer in _walk(form.root, ()):
        if node.error:
            yield FormFault(message=node.error, id=node.id, label=", ".join([*outer, node.label or "Value"]))
        if isinstance(node, ItemRows):
            named = [(row, said) for row in node.rows if (said := row.key_fault)]
            yield from (FormFault(message=said, id=f"{row.node.id}-key", label="New entry") for row, said in named)


def _walk(node: FormNode, outer: tuple[str, ...]) -> Iterator[tuple[FormNode, tuple[str, ...]]]:
    yield node, outer
    inside = (*outer, node.label) if node.label and node.place.depth else outer
    for child in node.children:
        yield from _walk(child, inside)
