"""Builds an object with named members. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from approvals.forms import names
from approvals.forms.build_context import Builder
from approvals.forms.nodes import MISSING, FormGroup, FormNode
from approvals.forms.places import FormPlace, unit_in
from approvals.forms.shapes import Shape, item_schema, member_schemas
from approvals.schema.walk import Schema, label_of

from . import windows


def build(builder: Builder, what: Shape, value: Any, place: FormPlace, *, switched: bool = False) -> FormGroup:
    """Build the object's members as nodes; those with pinned places come first.

    `switched`: another branch of a union was chosen, so members that only the old one had are dropped.
    """
    held: dict[str, Any] = value if isinstance(value, dict) else {}
    parts = member_schemas(what) if "properties" in what.schema else {}
    if not switched:
        free = item_schema(what)
        parts |= {name: free for name in held if name not in parts}
    order = sorted(parts, key=lambda name: not builder.holds_pinned(place.into(name).pointer))
    window = windows.window(builder, place, [place.into(name) for name in order])
    drawn = builder.draws(place)
    needed = what.schema.get("required", ())
    inner = []
    for at, name in enumerate(order):
        shown = drawn and window.first <= at + 1 <= window.last
        spot = place.into(
            name, required=name in needed, must=False, shown=shown, unit=unit_in(held),
            was=None if switched and name not in held else place.into(name).was,
            **called(parts[name], name, quoted=place.quoted),
        )  # fmt: skip
        if shown or builder.sent.speaks_of(spot.path):
            inner.append(builder.node(parts[name], held.get(name, MISSING), spot))
    now = _value(value, inner, place, switched=switched)
    error = windows.own_error(builder, place, [node.pointer for node in inner])
    if error and now is MISSING and any(map(_lacked, inner)):
        inner, error = [_show_error(node, error) for node in inner], ""
    return FormGroup(
        **builder.common(what, value, place),
        value=now,
        members=[node for node in inner if node.place.shown],
        rest=(rest := [node for node in inner if not node.place.shown]),
        window=window,
        carried=[pair for node in rest for pair in node.touched()] if drawn else (),
        error=error,
    )


def called(part: Schema, name: str, *, quoted: bool) -> dict[str, str]:
    """Return a member's label from the schema, or its real name where somebody else wrote the schema's words."""
    if not quoted:
        return {"label": label_of(part, name)}
    title = part.get("title")
    return {"label": name, "title": title if isinstance(title, str) and title != name else ""}


def _lacked(node: FormNode) -> bool:
    return node.place.required and node.value is MISSING


def _show_error(node: FormNode, error: str) -> FormNode:
    """Show the error of an absent object beside its required fields, as filling in any of them creates it."""
    if not _lacked(node):
        return node
    if isinstance(node, FormGroup) and any(map(_lacked, node.children)):
        return replace(node, members=[_show_error(member, error) for member in node.members])
    return replace(node, error=error)


def _value(value: Any, inner: list[FormNode], place: FormPlace, *, switched: bool) -> Any:
    """Return the object's present value, which is the rendered object itself where no member changed."""
    if isinstance(value, dict) and not switched:
        changed = {_token(node): node.value for node in inner if node.changed and not node.implied}
        return {**value, **changed} if changed else value
    lines = [node for node in inner if node.value is not MISSING]
    if place.must or switched or not all(node.implied for node in lines):
        return {_token(node): node.value for node in lines}
    return value


def _token(node: FormNode) -> str:
    return names.decoded(node.path.rpartition("/")[2])
