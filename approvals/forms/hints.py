"""Describes the bounds of a value, from its schema. Pure: patterns are shown, never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext_lazy

from .shapes import LISTED, Shape, bounds

LONGEST = 120  # characters shown of a pattern or a bound
KINDS = {
    "duration": gettext_lazy("such as PT1H30M"), "uuid": gettext_lazy("a UUID"),
    "email": gettext_lazy("an e-mail address"), "uri": gettext_lazy("an address"),
}  # fmt: skip
NUMBERS = {
    "exclusiveMinimum": gettext_lazy("more than %(value)s"), "minimum": gettext_lazy("at least %(value)s"),
    "exclusiveMaximum": gettext_lazy("less than %(value)s"), "maximum": gettext_lazy("at most %(value)s"),
    "multipleOf": gettext_lazy("in steps of %(value)s"),
}  # fmt: skip


SIZES = {
    "list": ("minItems", "maxItems", ngettext_lazy("%(count)s item", "%(count)s items", "number")),
    "map": ("minProperties", "maxProperties", ngettext_lazy("%(count)s entry", "%(count)s entries", "number")),
    "text": ("minLength", "maxLength", ngettext_lazy("%(count)s character", "%(count)s characters", "number")),
}


def hints(what: Shape, *, size: int | None = None) -> list[str]:
    """List the schema's constraints on a value, in words. With a text's `size`, only the bounds that it comes near."""
    schema = bounds(what.schema)
    found = [*_numbers(schema), *_sizes(schema, what.kind, size)]
    if size is None and what.kind == "text" and isinstance(what.schema.get("pattern"), str):
        found.append(_("in the form %(pattern)s") % {"pattern": short(what.schema["pattern"])})
    if schema.get("uniqueItems") is True:
        found.append(_("each once"))
    if what.kind in KINDS:
        found.append(str(KINDS[what.kind]))
    if len(what.options) > LISTED:
        found.append(_("one of %(count)s values") % {"count": f"{len(what.options):,}"})
    return found


def _numbers(schema: Mapping[str, Any]) -> list[str]:
    return [said % {"value": short(schema[name])} for name, said in NUMBERS.items() if _is_number(schema.get(name))]


def _sizes(schema: Mapping[str, Any], kind: str, size: int | None) -> list[str]:
    if kind not in SIZES:
        return []
    low, high, units = SIZES[kind]
    least, most = schema.get(low), schema.get(high)
    found = [_("at least %(value)s") % {"value": _counted(least, units)}] if _is_number(least) and least else []
    near = size is None or not _is_number(most) or size * 2 > float(most or 0)
    return found + ([_("at most %(value)s") % {"value": _counted(most, units)}] if _is_number(most) and near else [])


def _counted(count: Any, units: Any) -> str:
    """Write a number with its unit, in the plural where needed."""
    number = 1 if count == 1 else 2 if isinstance(count, float) else count
    return str(units % {"number": number, "count": short(count)})


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def short(value: Any) -> str:
    """Write a value of a schema as text, cut after LONGEST characters."""
    try:
        text = str(value)
    except ValueError:  # past Python's limit for decimal digits
        return _("a number of very many digits")
    if len(text) <= LONGEST:
        return text
    return _("%(beginning)s… (%(count)s characters)") % {"beginning": text[:LONGEST], "count": f"{len(text):,}"}
