"""Builds a choice between shapes: a union, or a nullable container. Pure.

Only the chosen branch's fields show. A name that two branches share keeps what was typed into it, since its input has
the same name in both. Fields that only the old branch had are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from approvals.schema.walk import Schema

from . import containers, leaves, names, shapes
from .builder import Builder, FieldFaults
from .nodes import MISSING, FieldOption, FormNode, FormPlace, ShapeChoice
from .shapes import RAW, Shape

NULL, VALUE, ODD = "none", "value", "json"
Branches = Mapping[str, tuple[str, Schema]]  # key -> (label, schema)


def build_choice(builder: Builder, what: Shape, value: Any, place: FormPlace) -> ShapeChoice:
    """Build the choice, and the node of the chosen branch."""
    branches = _branches(builder, what)
    rendered = _branch_of(builder, branches, what, value)
    options = _options(builder, what, branches, rendered, quoted=place.quoted)
    sent = builder.sent.text(place.path, names.BRANCH)
    chosen = sent if sent in {option.value for option in options} else rendered
    builder.faults = _relocated(builder, place, branches, chosen)
    inner = _inner(builder, branches, chosen, rendered, value, place)
    now = None if chosen == NULL else inner.value if inner is not None else value
    common = builder.common(what, value, place, names.BRANCH)
    return ShapeChoice(
        **common,
        value=value if chosen == rendered and (inner is None or not inner.changed) else now,
        choices=options,
        chosen=chosen,
        rendered=rendered,
        inner=inner,
        error="" if inner is not None else " ".join(builder.faults.within(place.pointer)),
    )


def _branches(builder: Builder, what: Shape) -> Branches:
    """Return the branches to choose from; a nullable value that is no union has one."""
    if what.kind != "union":
        return {VALUE: ("A value", what.schema)}
    labels = shapes.labels(what.branches, builder.root)
    return {label.lower(): (label, item) for label, item in zip(labels, what.branches, strict=True)}


def _branch_of(builder: Builder, branches: Branches, what: Shape, value: Any) -> str:
    """Return the key of the branch that a value belongs to."""
    if value is None and what.nullable:
        return NULL
    if value is MISSING:
        return NULL if what.nullable else ""
    if what.kind != "union":
        return VALUE
    found = [key for key, (_, part) in branches.items() if shapes.admits(part, value, builder.root)]
    loose = [key for key, (_, part) in branches.items() if _is_of(builder, what, part, value)]
    return (found or loose or [ODD])[0]


def _is_of(builder: Builder, what: Shape, part: Schema, value: Any) -> bool:
    """Tell whether the discriminator, or else the value's plain type, says that the value belongs to this branch."""
    inner = shapes.shape(part, builder.root)
    tell = what.schema.get("discriminator", {}).get("propertyName")
    if isinstance(value, dict) and isinstance(tell, str) and inner.kind == "object":
        kinds = shapes.shape(inner.schema["properties"].get(tell, {}), builder.root).options
        return value.get(tell) in kinds
    return inner.kind in shapes.CONTAINERS - {"union"} and shapes.fits(inner, value)


def _options(builder: Builder, what: Shape, branches: Branches, rendered: str, *, quoted: bool) -> list[FieldOption]:
    offered = [FieldOption(value=NULL, label="None", gives=NULL)] if what.nullable else []
    named, root = what.kind == "union", builder.root
    offered += [
        FieldOption(value=key, gives=key, label=shapes.spelled(part, root, label, quoted=quoted) if named else label)
        for key, (label, part) in branches.items()
    ]
    if rendered == "":
        offered.insert(0, FieldOption(value="", label="Choose…"))
    return offered + ([FieldOption(value=ODD, label="As it is, raw JSON", gives=ODD)] if rendered == ODD else [])


def _inner(
    builder: Builder, branches: Branches, chosen: str, rendered: str, value: Any, place: FormPlace
) -> FormNode | None:
    """Build the chosen branch's node, without a label, which the choice itself has."""
    if chosen in (NULL, ""):
        return None
    spot = replace(place, label="", must=place.must or chosen != rendered)
    if chosen == ODD:
        return leaves.build_leaf(builder, RAW, value, spot)
    part = branches[chosen][1]
    what = replace(shapes.shape(part, builder.root), nullable=False)
    if chosen == rendered:
        held = builder.shape(part, value, spot)
        return builder.plain(replace(held, nullable=False), value, spot)
    if what.kind == "object":
        return containers.build_group(builder, what, _shared(what, value), spot, switched=True)
    keeps = value not in (MISSING, None) and shapes.fits(what, value)
    node = builder.plain(what, value if keeps else MISSING, spot)
    return replace(node, was=value)


def _shared(what: Shape, value: Any) -> Any:
    """Return the members of an object that the new branch also has, except those that tell the branches apart."""
    if not isinstance(value, dict):
        return MISSING
    parts = what.schema["properties"]
    return {name: item for name, item in value.items() if name in parts and "const" not in parts[name]}


def _relocated(builder: Builder, place: FormPlace, branches: Branches, chosen: str) -> FieldFaults:
    """Remove the branch's name from the faults' places.

    A validator tries every branch and names each in its faults' places. Faults of branches that were not chosen are
    dropped, unless the chosen one has none.
    """
    if len(branches) < 2:
        return builder.faults
    inside = [at for at in builder.faults.messages if at.startswith(f"{place.pointer}/")]
    steps = {at: at[len(place.pointer) + 1 :].partition("/") for at in inside}
    tags = {key: shapes.tags(part, builder.root) for key, (_, part) in branches.items()}
    of_chosen = {at for at, (step, _, _) in steps.items() if step in tags.get(chosen, set())}
    of_others = {at for at, (step, _, _) in steps.items() if any(step in tag for tag in tags.values())} - of_chosen
    instead = {at: place.pointer + (f"/{steps[at][2]}" if steps[at][2] else "") for at in of_chosen}
    if of_chosen:
        instead |= dict.fromkeys(of_others, "")
    else:
        instead |= dict.fromkeys(of_others, place.pointer)
    return builder.faults.moved(instead) if instead else builder.faults
