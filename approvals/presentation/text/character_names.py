"""Names characters that a reader does not see, for the badges that stand in their place."""

from __future__ import annotations

import unicodedata

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

NAMES = {
    "\u200b": gettext_lazy("zero-width space"),
    "\u200c": gettext_lazy("zero-width non-joiner"),
    "\u200d": gettext_lazy("zero-width joiner"),
    "\u202a": gettext_lazy("left-to-right embedding"),
    "\u202b": gettext_lazy("right-to-left embedding"),
    "\u202c": gettext_lazy("end of direction"),
    "\u202d": gettext_lazy("left-to-right override"),
    "\u202e": gettext_lazy("right-to-left override"),
    "\ufeff": gettext_lazy("byte order mark"),
    "\t": gettext_lazy("tab"),
    "\r": gettext_lazy("carriage return"),
    "\x00": gettext_lazy("null"),
    "\x1b": gettext_lazy("escape"),
}


def hidden_name(char: str) -> str:
    """Name a hidden character: `U+202E right-to-left override`."""
    name = str(NAMES.get(char, "")) or unicodedata.name(char, "").lower()
    if not name:
        kinds = {"Cc": _("control character"), "Co": _("private character")}
        name = kinds.get(unicodedata.category(char), _("no character"))
    return f"U+{ord(char):04X} {name}"


def repeated_name(char: str, count: int) -> str:
    """Name a run of one character: `U+00A0 no-break space, 3 times`."""
    if count == 1:
        return hidden_name(char)
    times = ngettext("%(name)s, %(count)s time", "%(name)s, %(count)s times", count)
    return times % {"name": hidden_name(char), "count": f"{count:,}"}


def marks_name(marks: str) -> str:
    """Name combining marks: `30 combining marks`; a single one by its own name."""
    if len(marks) == 1:
        return hidden_name(marks)
    return ngettext("%(count)s combining mark", "%(count)s combining marks", len(marks)) % {"count": f"{len(marks):,}"}
