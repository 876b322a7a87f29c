"""Mutations of the judge, the projection and of who may decide, each of which the machine has to find.

    python -m tests.approvals.decisions.model.planted [NUMBER ...]

Each is planted by itself in a copy of the last commit, where the machine makes the worlds of `make test`, then those of
`make test-long`, and stops at the first promise that does not hold.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from tests.mutations.planting import copied

MACHINE = "tests/approvals/decisions/model/test_machine.py"
JUDGE, PROJECTION = "approvals/gates/judge.py", "approvals/gates/projection.py"
TALLY, AUTHORITY = "approvals/policy/tally.py", "approvals/policy/authority.py"
UNDO, DECIDING = "approvals/decisions/undo_window.py", "approvals/decisions/deciding.py"


class Planted(NamedTuple):
    """A change of one text in a module, which stands in it once."""

    module: str
    before: str
    after: str


PLANTED = (
    Planted(
        JUDGE, "if (why := standings[vote.decision].why_not)]",
        "if (why := standings[vote.decision].why_not) > 'Z']",
    ),
    Planted(JUDGE, "last = against[-1]", "last = against[0]"),
    Planted(JUDGE, "elif not count.left:", "elif count.left <= 1:"),
    Planted(JUDGE, "said = [self.rejects, self.proposal, self.then,", "said = [self.rejects, self.proposal,"),
    Planted(TALLY, "if not _fill(held, places, voters, filled, tried):", "if True:"),
    Planted(TALLY, "any(upto[each].fits(vote.person, vote.teams) for each in found)", "False"),
    Planted(TALLY, "if by is None and place.stage == self.stage}", "if by is None and place.stage >= self.stage}"),
    Planted(TALLY, "return min(open_ones,", "return max(open_ones,"),
    Planted("approvals/policy/required.py", "return needs.widened(", "return needs or needs.widened("),
    Planted(PROJECTION, "if needs.slots == 1 else None", "if needs.slots >= 1 else None"),
    Planted(PROJECTION, "gate.ending in (\"\", end.digest)", "True"),
    Planted(PROJECTION, "if each.user_id == by or each.authority == seat.person]", "if each.user_id == by]"),
    Planted(PROJECTION, "if each.pk not in lapsed}", "if False}"),
    Planted(PROJECTION, "if not rejects and (end := self.verdict.end) and end.rejects:", "if end := None:"),
    Planted(
        PROJECTION, "awaits = [] if gate.policy.plain else asked if end",
        "awaits = [] if gate.policy.plain else asked if asked",
    ),
    Planted(PROJECTION, "each.rejects == rejects and each.pk not in self.lapsed]", "each.rejects == rejects]"),
    Planted(
        DECIDING, "votes = [*(each for each in ballot.others if each.rejects or not prepared.next), decision]",
        "votes = [*ballot.others, decision]",
    ),
    Planted(UNDO, "Decision.objects.filter(pk=mine.pk).update(counts=False)", ""),
    Planted(AUTHORITY, "may = by.keys() - apart_from(gate)", "may = by.keys()"),
    Planted(AUTHORITY, "count.distance(each, by[each]), each", "each"),
    Planted(AUTHORITY, "stands = now.only(vote.authority)", "stands = now"),
    Planted(AUTHORITY, "if stands.own or why:", "if by.get(stands.person) or why:"),
    Planted(AUTHORITY, "rows[pk] if person in free}", "rows[pk] if person in asked}"),
    Planted(
        "approvals/gates/lists/queues.py", "OR coalesce(lent.team_id, -lent.person_id) = ANY(g.awaits) OR EXISTS (",
        "OR EXISTS (",
    ),
    Planted(
        "approvals/migrations/0047_gate_access.py", "approvals_lending lent ON lent.person_id = named.user_id AND",
        "approvals_lending lent ON lent.person_id = named.user_id OR",
    ),
)  # fmt: skip


def find(number: int, roots: SimpleQueue[Path]) -> tuple[int, str]:
    """Plant one, and return its number with what the machine found; "" where it finds nothing."""
    root, planted = roots.get(), PLANTED[number - 1]
    path = root / planted.module
    source = path.read_text()
    if source.count(planted.before) != 1:
        raise ValueError(f"{number}: {planted.module} has {source.count(planted.before)} times {planted.before}")
    path.write_text(source.replace(planted.before, planted.after))
    try:
        for mark in ("not long", "long"):
            command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", mark, MACHINE]
            done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
            if done.returncode:
                says = [line for line in done.stdout.splitlines() if line.startswith("E  ")] or [done.stdout[-200:]]
                return number, f"{mark}: {says[0]}"
    finally:
        path.write_text(source)
        roots.put(root)
    return number, ""


def main(numbers: list[int]) -> int:
    """Plant these, or all; return 1 where one is not found."""
    roots, wanted, escaped = SimpleQueue[Path](), numbers or list(range(1, len(PLANTED) + 1)), 0
    with copied() as first, copied() as second, ThreadPoolExecutor(2) as pool:
        roots.put(first)
        roots.put(second)
        for number, found in pool.map(lambda number: find(number, roots), wanted):
            planted = PLANTED[number - 1]
            sys.stdout.write(f"{number} {planted.module}: {planted.before!r} -> {found or 'ESCAPES'}\n")
            sys.stdout.flush()
            escaped += not found
    return int(bool(escaped))


if __name__ == "__main__":
    sys.exit(main([int(each) for each in sys.argv[1:]]))
