"""Reads from people's feedback which jobs are not to move.

Reviewers may ask in plain words: "keep job 3", "keep jobs 3, 5 and 7", "let job 3 move". Later words override earlier
ones. Jobs are numbered as in the file and in the charts, from 0. A validator's words are under its own name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .state import Feedback

VALIDATORS = ("check_plan", "check_local", "check_global")
_KEEP = r"(?:keep|hold|do not move|don't move|leave)"
_ASKED = re.compile(
    rf"\b(?:(?P<keep>{_KEEP})|let|free|release|move)\b[^.;\d]*?\bjobs?\s+(\d{{1,4}}(?:\s*(?:,|and|&|\s)\s*\d{{1,4}})*)",
    re.IGNORECASE,
)


def read_feedback(feedback: Sequence[Feedback], jobs: int) -> tuple[set[int], list[str]]:
    """(the jobs that are not to move, the names of those who wrote what no rule reads), in a shop of `jobs` jobs."""
    kept, unread = set[int](), list[str]()
    for said in feedback:
        asked = [(each["keep"], set(map(int, re.findall(r"\d+", each[2])))) for each in _ASKED.finditer(said.text)]
        for keep, named in asked:
            known = {number for number in named if number < jobs}
            kept = kept | known if keep else kept - known
        if said.by not in VALIDATORS and not any(min(named) < jobs for _, named in asked):
            unread.append(said.by or "somebody")
    return kept, unread


def count_refusals(feedback: Sequence[Feedback], validator: str) -> int:
    """Count how often a validator refused what it judges."""
    return sum(1 for said in feedback if said.by == validator)
