"""Finds the parts of a card's arguments that a reviewer cannot read on the page, though they would run. Pure.

What runs is in the bytes that a decision binds; a title or a quote is what the agent says. These are neither: a file,
of which the page shows the name and the digest; text in an encoding, such as Base64; a text so long that its middle is
not in the page. Nobody approves one by a single key, or together with other gates.

An encoding is told by its letters: in Base64 their kind (small, capital, digit) changes at more than a third of the
places, which it never does in words, paths or names. Digests and keys of usual length are left alone, as their letters
say nothing anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from checkpoints.values import artifacts
from checkpoints.values.json_pointer import make_pointer

from .action import Action
from .card import Card

FILE = "a file: the page shows its name, size and digest"
ENCODED = "text in an encoding"
CUT = "so long that the page does not have all of it"
LONGEST = 100_000  # characters of a text that the page has whole, see presentation.text.untrusted
SHORTEST = 64  # characters of an encoded token: the longest of the usual keys and digests have no more
HEX = 128  # the same of hexadecimal: a SHA-512
CHANGING = 0.34  # of the places of a token, those at which the kind of its letters changes
ESCAPES = 12  # escaped characters in a row of escapes and single characters
_TOKEN = re.compile(rf"[A-Za-z0-9+/_-]{{{SHORTEST + 1},}}={{0,2}}")
_WRAPPED = re.compile(r"(?<=[A-Za-z0-9+/_-]{40})\r?\n(?=[A-Za-z0-9+/_-])")  # Base64 in lines of 60 to 76
_ESCAPED = re.compile(
    rf"(?:(?:%[0-9A-Fa-f]{{2}}|\\x[0-9A-Fa-f]{{2}}|\\u[0-9A-Fa-f]{{4}}|\\[0-7]{{3}}|&#x?[0-9A-Fa-f]+;|=[0-9A-F]{{2}})"
    rf"[^%\\&=]?){{{ESCAPES},}}"
)
_DATA = re.compile(r"data:[\w/+.;=-]*,[^\s\"'<>]{32}", re.IGNORECASE)


@dataclass(frozen=True)
class UnreadablePart:
    """One part that cannot be read here: its JSON Pointer in the action's arguments, and what it is."""

    at: str
    why: str


def find_unreadable(action: Action) -> tuple[UnreadablePart, ...]:
    """List the parts of an action's arguments that cannot be read here, as they are shown; none of one that is off."""
    if action.settled:
        return ()
    known: tuple[UnreadablePart, ...] | None = action.derived.get("unreadable")
    if known is None:
        known = action.derived["unreadable"] = tuple(_parts(action.masked))
    return known


def is_unreadable(card: Card) -> bool:
    """Tell whether some part of what would run cannot be read here."""
    return any(find_unreadable(action) for action in card.actions)


def _parts(arguments: Any) -> Iterator[UnreadablePart]:
    left: list[tuple[tuple[str | int, ...], Any]] = [((), arguments)]
    while left:
        path, node = left.pop()
        if artifacts.is_reference(node):
            yield UnreadablePart(make_pointer(*path), FILE)
        elif isinstance(node, dict):
            left.extend(((*path, name), node[name]) for name in sorted(node, reverse=True))
        elif isinstance(node, list | tuple):
            left.extend(((*path, at), node[at]) for at in range(len(node) - 1, -1, -1))
        elif isinstance(node, str) and len(node) > LONGEST:
            yield UnreadablePart(make_pointer(*path), CUT)
        elif isinstance(node, str) and is_encoded(node):
            yield UnreadablePart(make_pointer(*path), ENCODED)


def is_encoded(text: str) -> bool:
    """Tell whether a text has a stretch in an encoding: Base64, long hexadecimal, escapes, a data URL."""
    if len(text) <= ESCAPES * 3:
        return False
    joined = _WRAPPED.sub("", text)
    tokens = (found.group().rstrip("=") for found in _TOKEN.finditer(joined))
    return any(map(_is_opaque, tokens)) or bool(_ESCAPED.search(text) or _DATA.search(text))


def _is_opaque(token: str) -> bool:
    if re.fullmatch(r"[0-9a-fA-F]+", token):
        return len(token) > HEX
    kinds = ["a" if "a" <= letter <= "z" else "A" if "A" <= letter <= "Z" else "0" for letter in token]
    return sum(a != b for a, b in pairwise(kinds)) > CHANGING * len(token)
