"""Tells which characters a reader does not see, or sees on and over others, and names them.

The choice follows UAX 9 (bidi) and UTS 51 (joiners inside emoji are kept).
"""

from __future__ import annotations

import unicodedata

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

DRAW_NOTHING = frozenset(
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u2800\u3164\uffa0\ufffc\U00016fe4\U0001d159"
)
JOINER, EMOJI_STYLE, KEYCAP = "\u200d", "\ufe0f", "\u20e3"
OVERLAY = 1  # the combining class of marks that are laid over a character
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


def is_hidden(char: str) -> bool:
    """Tell whether `char` draws nothing, or changes how its neighbours are drawn."""
    if char in "\n\t" or " " <= char <= "~":
        return False
    category = unicodedata.category(char)
    if category in ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp") or char in DRAW_NOTHING:
        return True
    return "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef"


def is_mark(char: str) -> bool:
    """Tell whether it is drawn on the character before it."""
    return bool(unicodedata.combining(char)) or (unicodedata.category(char) == "Me" and char != KEYCAP)


def is_overlay(char: str) -> bool:
    """Tell whether it is drawn over the character before it, or around it."""
    return unicodedata.combining(char) == OVERLAY or (unicodedata.category(char) == "Me" and char != KEYCAP)


def marks_name(marks: str) -> str:
    """Name combining marks: `30 combining marks`; a single one by its own name."""
    if len(marks) == 1:
        return hidden_name(marks)
    return ngettext("%(count)s combining mark", "%(count)s combining marks", len(marks)) % {"count": f"{len(marks):,}"}


def in_emoji(text: str, at: int) -> bool:
    """Tell whether a joiner or a style selector sits where emoji use it."""
    if text[at] not in (JOINER, EMOJI_STYLE) or at == 0:
        return False
    before = unicodedata.category(text[at - 1]) in ("So", "Sk", "Po", "Nd") or text[at - 1] == EMOJI_STYLE
    if text[at] == EMOJI_STYLE:
        return before
    return before and at + 1 < len(text) and unicodedata.category(text[at + 1]) == "So"
