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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from checkpoints.values import artifacts
from checkpoints.values.json_pointer import make_pointer

from .action import Action

FILE = "a file: the page shows its name, size and digest"
ENCODED = "text in an encoding"
CUT = "so long that the page does not have all of it"
SHORT, LONGEST = 300, 100_000  # characters of a text that the page always has whole; of all longer ones together
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


def find_unreadable(actions: Sequence[Action]) -> dict[str, list[UnreadablePart]]:
    """List by action id the parts that cannot be read here, as they are shown; of actions that would run.

    A page has room for so many characters, which all arguments share.
    """
    found: dict[str, list[UnreadablePart]] = {}
    room = LONGEST
    for action in actions:
        for at, node in () if action.settled else _leaves(action.masked):
            why = FILE if not isinstance(node, str) else ENCODED if is_encoded(node) else ""
            if not why and len(node) > SHORT:
                why, room = (CUT, room) if len(node) > room else ("", room - len(node))
            if why:
                found.setdefault(action.id, []).append(UnreadablePart(at, why))
    return found


def _leaves(arguments: Any) -> Iterator[tuple[str, Any]]:
    """Yield each text and each file's reference with its place; a member's name is a text at the member's place."""
    left: list[tuple[tuple[str | int, ...], Any]] = [((), arguments)]
    while left:
        path, node = left.pop()
        if isinstance(node, str) or artifacts.is_reference(node):
            yield make_pointer(*path), node
        elif isinstance(node, dict):
            yield from ((make_pointer(*path, name), name) for name in node)
            left.extend(((*path, name), node[name]) for name in sorted(node, reverse=True))
        elif isinstance(node, list | tuple):
            left.extend(((*path, at), node[at]) for at in range(len(node) - 1, -1, -1))


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
