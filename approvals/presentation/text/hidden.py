"""Finds what the texts of a state hide from a reader, without trusting the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from approvals.english import count_of

from . import invisible, untrusted


def within(values: Mapping[str, Any]) -> list[tuple[str, str]]:
    """List (icon, sentence) about what the texts of named values hide: invisible characters and blank lines."""
    said = []
    counts = {name: [invisible.badge_count(text) for text in texts(value)] for name, value in values.items()}
    longest = {name: max((blank for _, blank in found), default=0) for name, found in counts.items()}
    deserts = {name: blank for name, blank in longest.items() if blank}
    ghosts = {name: count for name, found in counts.items() if (count := sum(characters for characters, _ in found))}
    if deserts:
        where = ", ".join(untrusted.plain(name, limit=40) for name in deserts)
        lines = count_of(max(deserts.values()), "blank line")
        said.append(("fold", f"A text in {where} hides what follows behind {lines}"))
    if ghosts:
        where = ", ".join(untrusted.plain(name, limit=40) for name in ghosts)
        said.append(("hidden", f"{count_of(max(ghosts.values()), 'character')} in {where} cannot be seen"))
    return said


def texts(value: Any) -> list[str]:
    """List every text in a JSON value, keys included."""
    found, left = [], [value]
    while left:
        each = left.pop()
        if isinstance(each, str):
            found.append(each)
        elif isinstance(each, dict):
            left.extend(each.keys())
            left.extend(each.values())
        elif isinstance(each, (list, tuple)):
            left.extend(each)
    return found
