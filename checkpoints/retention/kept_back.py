"""Counts the checkpoints that a dry run listed and its prune did not remove, by reason, once a run's part is over."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from checkpoints.models import PruneLine

from . import reading, rules

POLICY, FAULT, MOVED = "policy", "fault", "moved"
REASONS = rules.REASONS | {
    POLICY: "the policy was changed meanwhile",
    FAULT: "the stored data failed its integrity check",
    MOVED: "the run was being changed meanwhile",
}


class KeptBack(NamedTuple):
    """The number of a run's checkpoints that stayed for one reason; `hold` is the hold's id if a hold is the reason."""

    reason: str
    hold: int | None
    checkpoints: int


def count_by_reason(line: PruneLine, *, counts: bool) -> list[KeptBack]:
    """Count by reason the checkpoints that the line lists and that still exist.

    `counts`: whether the line's policy is still in force.
    """
    history = reading.for_rules(line.run_id)
    there = rules.within([place.seq for place in history.places], line.ranges)
    if not there:
        return []
    if line.fault or not counts:
        return [KeptBack(FAULT if line.fault else POLICY, None, len(there))]
    verdict = rules.decide(history, line.policy, line.prune.at)
    holders = {seq: hold for hold, seqs in verdict.by_hold.items() for seq in seqs}
    found = Counter((verdict.reasons.get(seq, MOVED), holders.get(seq)) for seq in there)
    return [KeptBack(reason, hold, count) for (reason, hold), count in sorted(found.items(), key=lambda item: item[1])]
