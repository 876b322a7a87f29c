"""Builds one input: a text, a number, a day, a value of a list, raw JSON. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from approvals.schema.redact import Redaction
from checkpoints.errors import ValueRefused
from checkpoints.values.patch import are_same

from . import names, texts
from .builder import Builder, normalise_line_breaks, normalise_text
from .nodes import MISSING, FieldOption, FormField, FormPlace
from .shapes import LISTED, Shape, list_hints, shorten_value

EMPTY = "This cannot be left empty."
ROOMY = 1_000  # maximum length from which an empty text gets several lines


def build_leaf(builder: Builder, what: Shape, value: Any, place: FormPlace) -> FormField:
    """Build the input of one place, with what was typed into it."""
    if what.kind == "datetime":
        return _moment(builder, what, value, place)
    refused = (builder.sent.text(place.path, names.FILE) or "") if what.kind == "file" else ""
    given = _given(what, value, place)
    veil = builder.veil(what.schema, place)
    if what.kind == "json":
        given = veil.masked(given, named=True)
    rendered = texts.written(what.kind, given)
    sent = builder.sent.text(place.path)
    changed = sent is not None and normalise_text(sent) != normalise_text(rendered)
    new, fault = (
        _typed(what, normalise_line_breaks(str(sent)), value, veil) if changed else (_untouched(what, value, place), "")
    )
    fault = refused or fault
    error = " ".join(builder.faults.within(place.pointer)) or fault
    return FormField(
        **builder.common(what, value, place),
        kind=_input(what, rendered),
        upload_name=builder.sent.name(place.path, names.FILE) if what.kind == "file" else "",
        refused=refused,
        value=new,
        text=normalise_line_breaks(str(sent)) if changed else rendered,
        rendered=rendered,
        choices=_choices(what, value, rendered),
        suggestions=[texts.option(option) for option in what.options[:LISTED]] if len(what.options) > LISTED else (),
        hints=[
            *_default(what, value, place),
            *list_hints(what, size=None if place.was is None or error else len(rendered)),
        ],
        fault=fault,
        error=error,
        exact=normalise_line_breaks(rendered) == rendered and not texts.CONTROLS.search(rendered),
        nullable=what.nullable,
        implied=value is MISSING and "const" in what.schema,
    )


def _given(what: Shape, value: Any, place: FormPlace) -> Any:
    """Return the value that an input starts with, or the schema's default where it cannot be left out.

    Elsewhere a default that was not saved is not drawn, since what is not in the value does not run.
    """
    if not place.must or value is not MISSING or "default" not in what.schema:
        return value
    default = what.schema["default"]
    return default if what.kind == "enum" or texts.shows(what.kind, default) else value


def _typed(what: Shape, text: str, value: Any, veil: Redaction) -> tuple[Any, str]:
    """Return (the value of a changed text, "") or (the old value, why the text cannot be read)."""
    try:
        new = _read(what, text, value)
        new = veil.restore(new, value) if what.kind == "json" else new
    except ValueRefused as refused:
        return value, f"At {refused.pointer or 'the top'}, {refused.reason}."
    except ValueError as fault:
        return value, str(fault)
    if new is MISSING or (value is not MISSING and are_same(new, value)):
        return value, ""
    return new, ""


def _untouched(what: Shape, value: Any, place: FormPlace) -> Any:
    """Return the value of an input that nobody typed into; an item of a list cannot be left out."""
    if value is MISSING and "const" in what.schema:
        return what.schema["const"]
    if value is not MISSING or not place.must:
        return value
    given = _given(what, value, place)
    if given is not MISSING:
        return given
    return "" if what.kind == "text" else None if what.nullable else MISSING


def _read(what: Shape, text: str, value: Any) -> Any:
    """Read the value of a changed text. Raises ValueError with what to write instead."""
    if what.kind == "secret":
        return text if text else MISSING
    if what.kind in texts.WORDS and what.kind not in texts.READERS:
        return None if not text and what.nullable else text
    if not text.strip():
        return _empty(what, value)
    if what.kind == "enum":
        return _enum(what, text)
    read = texts.read(what.kind, text)
    return _named(what, read, value) if what.kind == "file" else read


def _named(what: Shape, read: Any, value: Any) -> Any:
    """Return a file's reference, with its name only where the schema or the old value has one."""
    known = what.schema.get("properties")
    room = not isinstance(known, dict) or "name" in known or (isinstance(value, dict) and "name" in value)
    return read if room else {name: item for name, item in read.items() if name != "name"}


def _empty(what: Shape, value: Any) -> Any:
    if what.nullable:
        return None
    if value is MISSING:
        return MISSING
    raise ValueError(EMPTY)


def _enum(what: Shape, text: str) -> Any:
    for value in what.options:
        if texts.option(value) == text:
            return value
    named = ", ".join(texts.option(value)[:80] for value in what.options[:20])
    more = f" and {len(what.options) - 20:,} more" if len(what.options) > 20 else ""
    raise ValueError(f"Choose one of {named}{more}.")


def _input(what: Shape, text: str) -> str:
    """Choose the kind of input; for an empty text by the length that the schema allows."""
    if what.kind not in ("text", "base64"):
        return what.kind
    most = what.schema.get("maxLength")
    if not text and isinstance(most, int) and most > ROOMY:
        return "long"
    return "long" if len(text) > texts.LONG or "\n" in text or "\r" in text else "text"


def _choices(what: Shape, value: Any, rendered: str) -> tuple[FieldOption, ...]:
    values: list[Any] = [True, False] if what.kind == "boolean" else list(what.options)
    if what.kind not in ("boolean", "enum") or len(values) > LISTED:
        return ()
    if what.kind == "enum" and value not in (MISSING, None) and rendered not in map(texts.option, values):
        values.insert(0, value)
    labels = {"true": "Yes", "false": "No"} if what.kind == "boolean" else {}
    named = [(texts.option(option), option) for option in values]
    offered = [FieldOption(value=text, label=labels.get(text, text), gives=option) for text, option in named]
    if (what.nullable or value is MISSING) and "const" not in what.schema:
        offered.insert(0, FieldOption(value="", label="None" if what.nullable else "Choose…"))
    return tuple(offered)


def _default(what: Shape, value: Any, place: FormPlace) -> list[str]:
    """List a hint with the schema's default, where the value is missing."""
    if value is not MISSING or place.must or "default" not in what.schema:
        return []
    default = shorten_value(texts.option(what.schema["default"]) or "empty")
    return [f"default {default}" if place.was is None else f"not there; default {default}"]


def _moment(builder: Builder, what: Shape, value: Any, place: FormPlace) -> FormField:
    """Build a moment: its local time and its offset, each in its own input, so that neither shifts the other."""
    split = texts.split_moment(value) if isinstance(value, str) else ("", "")
    if split is None:
        return build_leaf(builder, replace(what, kind="moment"), value, place)
    local, zone = split
    sent, sent_zone = builder.sent.text(place.path), builder.sent.text(place.path, names.ZONE)
    now, zone_now = local if sent is None else sent.strip(), zone if sent_zone is None else sent_zone.strip()
    same_time = texts.same_clock(now, local)
    new, fault = value, ""
    if not (same_time and zone_now == zone):
        new, fault = _read_moment(what, local if same_time else now, zone_now, value)
    return FormField(
        **builder.common(what, value, place),
        kind="datetime",
        value=new,
        text=local if same_time else now,
        rendered=local,
        zone_name=builder.sent.name(place.path, names.ZONE),
        zone=zone_now,
        zone_rendered=zone,
        hints=[*_default(what, value, place), *list_hints(what)],
        fault=fault,
        error=" ".join(builder.faults.within(place.pointer)) or fault,
        nullable=what.nullable,
    )


def _read_moment(what: Shape, local: str, zone: str, value: Any) -> tuple[Any, str]:
    try:
        new = _empty(what, value) if not local else texts.join_moment(local, zone)
    except ValueError as fault:
        return value, str(fault)
    return (value if new is MISSING else new), ""
