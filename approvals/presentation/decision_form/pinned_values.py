"""Lists the pinned values of an action: shown before its typed fields, never folded, with who changed them."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Any

from approvals import forms
from approvals.cards.action import Action
from approvals.forms import MISSING, Form, FormField, FormNode
from approvals.presentation.text import amounts, exact_call
from checkpoints.values import json_pointer


@dataclass(frozen=True, kw_only=True)
class PinnedValue:
    """A pinned value, which is never folded or clamped."""

    label: str
    value: Any
    place: str = ""  # its pointer within the arguments
    name: str = ""  # of the input that edits it
    parts: str = ""  # the prefix of the inputs that edit it part by part
    before: Any = None
    changed: str = ""  # who changed it: "you", "others", or nobody
    editable: bool = False
    unit: str = ""  # the currency beside an amount
    wrong: bool = False  # the typed text cannot be read, so there is no amount in words
    quoted: bool = False  # `label` is its real name, and `said` the external program's name for it
    said: str = ""

    @property
    def words(self) -> str:
        """Write the amount in words; "" without a currency, or where the typed text cannot be read."""
        return amounts.in_words(self.value, self.unit) if self.unit and not self.wrong else ""


def pinned_of(
    action: Action, *, mine: Any, before: Action | None, form: Form | None, values: Sequence[FormNode] = (),
    wrong: Container[str] = (), quoted: bool = False,
) -> list[PinnedValue]:  # fmt: skip
    """List the pinned values, with the reader's own `mine`. `wrong`: pointers of typed ones that cannot be read."""
    known = form.nodes if form else [inner for each in values for inner in forms.all_nodes(each)]
    fields = {each.pointer: each for each in known if isinstance(each, FormField)}
    names = {each.pointer: each.name for each in known}
    called = {each.pointer: each for each in known if each.label}
    found = []
    for place in action.pinned:
        stands = at(action.arguments, place)
        value, proposed = at(mine, place), at(before.arguments, place) if before else stands
        if value is MISSING and stands is MISSING:
            continue
        changed = "you" if value != stands else "others" if stands != proposed else ""
        hidden = action.redaction.at(place)
        label, said = _called(called.get(place), place, quoted=quoted)
        old, field = stands if changed == "you" else proposed, fields.get(place)
        parts = names.get(place, "") if form and field is None else ""
        beside = at(mine, place.rpartition("/")[0])
        found.append(
            PinnedValue(
                label=label, place=place, said=said, quoted=quoted, value=shown(hidden.masked(value)),
                name=field.name if field else "", parts=parts,
                before=shown(hidden.masked(old)), changed=changed,
                editable=form is not None and (field.open if field else any(each.pointer == place for each in known)),
                unit=forms.unit_in(beside) if field is not None and field.kind == "decimal" else "",
                wrong=place in wrong,
            )
        )  # fmt: skip
    return found


def _called(node: FormNode | None, place: str, *, quoted: bool) -> tuple[str, str]:
    """Return (the name of a pinned value, where `quoted` also the external program's name for it)."""
    if quoted:
        return exact_call.dotted(place) or "all of it", node.place.title if node else ""
    plain = node.label if node else " ".join(json_pointer.split_pointer(place)).replace("_", " ")
    return plain or "all of it", ""


def at(value: Any, place: str) -> Any:
    """Return the value at a pointer, or MISSING."""
    return json_pointer.get(value, place, MISSING)


def shown(value: Any) -> Any:
    """Return a pinned value, or words for a missing one."""
    return "(not there)" if value is MISSING else value
