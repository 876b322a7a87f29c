"""Builds a form's nodes from a schema, a value and what was posted. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import cached_property

from approvals.schema.redact import Redaction
from approvals.schema.walk import Schema, sanitise_schema

from . import choices, containers, leaves
from .builder import CHOICE, LEAF, Build, Builder, FieldFaults, SentFields
from .nodes import FormField, FormNode, FormPlace

INPUTS = 300  # drawn at once; later containers are closed until somebody opens them
KINDS: dict[str, Build] = {
    "object": containers.build_group,
    "list": containers.build_list,
    "tuple": containers.build_list,
    "map": containers.build_map,
    LEAF: leaves.build_leaf,
    CHOICE: choices.build_choice,
}


@dataclass(frozen=True)
class Form:
    """A whole form. `value`: what was typed, with the old value where that could not be read."""

    root: FormNode

    @property
    def value(self) -> Any:
        return self.root.value

    @cached_property
    def errors(self) -> dict[str, str]:
        """Return the faults of texts that could not be read: JSON Pointer -> message."""
        return dict(self.root.faults())

    @cached_property
    def touched(self) -> dict[str, str]:
        """Return name -> text of everything that differs from what was rendered."""
        return dict(self.root.touched())

    @cached_property
    def fields(self) -> list[FormField]:
        """List every input of the form, in order, also inputs that are not drawn."""
        return [node for node in self.nodes if isinstance(node, FormField)]

    @cached_property
    def nodes(self) -> list[FormNode]:
        """List every node, the outermost first."""
        return list(all_nodes(self.root))


def build(
    schema: Schema,
    value: Any,
    *,
    prefix: str = "",
    posted: Mapping[str, str] | None = None,
    errors: Mapping[str, str] | None = None,
    pinned: Sequence[str] = (),
    missing: Sequence[str] = (),
    inputs: int = INPUTS,
    quoted: bool = False,
    label: str = "",
    veil: Redaction | None = None,
) -> Form:
    """Build the form of `value`, with what was `posted` for it.

    `errors`: JSON Pointer into the form's value -> message. With `inputs` 0 only containers are drawn in which somebody
    typed: for reading alone. `quoted`: somebody else wrote the schema's words. `label`: the whole's name. `veil`: over
    the value, where it hides more than the schema does.
    """
    root = sanitise_schema(schema)
    builder = Builder(
        root=root, sent=SentFields.from_posted(posted or {}, prefix), faults=FieldFaults(errors or {}), pinned=pinned,
        missing=missing, remaining=inputs, kinds=KINDS, over=veil,
    )  # fmt: skip
    return Form(builder.node(root, value, FormPlace(quoted=quoted, label=label or FormPlace.label)))


def all_nodes(node: FormNode) -> Iterator[FormNode]:
    """Yield a node and everything in it, the outermost first."""
    yield node
    for child in node.children:
        yield from all_nodes(child)
