"""Parses the feedback of people and validators for what the agent can follow.

Reviewers may ask in plain words: "keep job 3", "keep jobs 3, 5 and 7", "let job 3 move". Later words override earlier
ones. Jobs are numbered as in the file and in the charts, from 0. Feedback that no rule matches changes nothing, and its
author is named. A validator's words are under its own name, and skipped here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from .state import Feedback

VALIDATORS = ("check_plan", "check_local", "check_global")

_JOBS = r"jobs?\s+(?P<jobs>\d{1,4}(?:\s*(?:,|and|&|\s)\s*\d{1,4})*)"
_RULES = (
    (re.compile(rf"\b(?:keep|hold|do not move|don't move|leave)\b[^.;\d]*?\b{_JOBS}", re.IGNORECASE), True),
    (re.compile(rf"\b(?:let|free|release|move)\b[^.;\d]*?\b{_JOBS}", re.IGNORECASE), False),
)
_NOT = re.compile(r"\b(?:do not|don't|not)\s+$", re.IGNORECASE)


@dataclass
class Heeded:
    """The jobs that are not to move, and who wrote what no rule reads."""

    kept: set[int] = field(default_factory=set)
    unread: list[str] = field(default_factory=list)  # by name


def heeded(feedback: Sequence[Feedback], jobs: int) -> Heeded:
    """Return what the feedback asks for, in a shop of `jobs` jobs."""
    found = Heeded()
    for said in feedback:
        if said.by in VALIDATORS:
            continue
        understood = False
        for rule, keeps in _RULES:
            for match in rule.finditer(said.text):
                if not keeps and _NOT.search(said.text[: match.start()]):
                    continue  # "do not move job 3" is the other rule's
                named = {int(number) for number in re.findall(r"\d+", match["jobs"])}
                understood |= any(number < jobs for number in named)
                known = {number for number in named if number < jobs}
                found.kept = found.kept | known if keeps else found.kept - known
        if not understood:
            found.unread.append(said.by or "somebody")
    return found


def refusals(feedback: Sequence[Feedback], validator: str) -> int:
    """Count how often a validator refused what it judges."""
    return sum(1 for said in feedback if said.by == validator)
