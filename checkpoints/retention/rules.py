"""The retention rules: decide which checkpoints of a run to remove, and why the others stay. Pure, over row columns.

A checkpoint is removed only if every rule allows it. Kinds and steps say what a row is: a *gate* is the state that a
gate showed, a *decision* records the gate's outcome, a *final* is the last row of a branch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from checkpoints.models import RetentionPolicy
from checkpoints.values.checkpoint_kinds import OUTCOMES, OUTPUT_LANDED, Kind

HELD, NEEDED, LAST, YOUNG, GATE, DECISION, FINAL = "held", "needed", "count", "age", "gate", "decision", "final"
REASONS = {
    HELD: "held",
    NEEDED: "needed to resume or undo",
    LAST: "among the newest",
    YOUNG: "too young",
    GATE: "shown at a gate",
    DECISION: "with a decision or the input",
    FINAL: "at the end of a branch",
}
BY_HAND = ("rewind", "edit", "upcast", "recovery", "reopen")  # kinds that the runtime reads again at any age
ASKED = (*OUTCOMES, Kind.ASKED)  # kinds of what follows the state that a gate showed


class RetentionRow(NamedTuple):
    """One row. `effect`: the next step is an effect; `size`: the bytes of its payload.

    Ids are bytes, which compare and hash faster than UUID objects.
    """

    seq: int
    id: bytes
    parent: bytes | None
    kind: str
    step: str
    at: datetime
    anchor: bool
    effect: bool
    size: int


class ActiveHold(NamedTuple):
    """A hold in force: on one checkpoint, or on the whole run."""

    id: int
    checkpoint: bytes | None


@dataclass(frozen=True)
class RetentionHistory:
    """One run's rows in the order of their numbers, and what protects them."""

    places: Sequence[RetentionRow]
    head: bytes | None
    live: bool
    holds: Sequence[ActiveHold] = ()
    rebuilt_from: Collection[bytes] = ()  # ids of checkpoints without which the head's state is not whole


@dataclass(frozen=True)
class RetentionVerdict:
    """The numbers to remove, in order; why each other row stays; and by hold id, the numbers that only it keeps."""

    going: list[int]
    reasons: Mapping[int, str]
    by_hold: Mapping[int, Sequence[int]] = field(default_factory=dict)


def decide(history: RetentionHistory, policy: RetentionPolicy, now: datetime) -> RetentionVerdict:
    """Decide which of a run's checkpoints this policy removes, with ages counted up to `now`.

    A policy that keeps neither by age nor by count keeps everything.
    """
    places = history.places
    if policy.keep_days is None and policy.keep_last is None:
        return RetentionVerdict([], dict.fromkeys((place.seq for place in places), YOUNG))
    reasons: dict[int, str] = {}
    for name, seqs in _protected(history, policy, now):
        for seq in seqs:
            reasons.setdefault(seq, name)
    before = [place.seq for place in places if place.seq not in reasons]
    held = _seqs_by_hold(history, before)
    for seqs in held.values():
        reasons.update(dict.fromkeys(seqs, HELD))
    return RetentionVerdict([seq for seq in before if seq not in reasons], reasons, held)


def _protected(
    history: RetentionHistory, policy: RetentionPolicy, now: datetime
) -> Iterable[tuple[str, Collection[int]]]:
    places = history.places
    yield NEEDED, _needed(history)
    if policy.keep_last is not None:
        yield LAST, [place.seq for place in places[-policy.keep_last :]]
    if policy.keep_days is not None:
        since = now - timedelta(days=policy.keep_days)
        yield YOUNG, [place.seq for place in places if place.at > since]
    asked = _asked(places)
    if policy.keep_gates or history.live:
        yield GATE, asked
    if policy.keep_decisions or history.live:
        yield DECISION, [place.seq for place in places if place.kind in ASKED or place.kind == "input"]
    if policy.keep_finals:
        parents = {place.parent for place in places}
        yield FINAL, [place.seq for place in places if place.id not in parents]


def _seqs_by_hold(history: RetentionHistory, seqs: Sequence[int]) -> dict[int, Sequence[int]]:
    """Return, for each hold that keeps any of `seqs`, those that it keeps."""
    if not (history.holds and seqs):
        return {}
    going = set(seqs)
    numbers = {place.id: place.seq for place in history.places if place.seq in going}
    found: dict[int, Sequence[int]] = {}
    for hold in history.holds:
        if hold.checkpoint is None:
            found[hold.id] = seqs
        elif hold.checkpoint in numbers:
            found[hold.id] = [numbers[hold.checkpoint]]
    return found


def _asked(places: Sequence[RetentionRow]) -> list[int]:
    """Return the numbers of gates whose outcome is recorded; open gates have holds."""
    parents = {place.parent for place in places if place.kind in ASKED}
    return [place.seq for place in places if place.id in parents] if parents else []


def _needed(history: RetentionHistory) -> set[int]:
    """Return the numbers that the runtime reads again: to resume, to undo effects, and to compare people's changes."""
    places = history.places
    found = {place.seq for place in places if place.effect or place.kind in BY_HAND or place.id == history.head}
    found |= {place.seq for place in places if place.id in history.rebuilt_from}
    wanted = {place.parent for place in places if place.kind in BY_HAND}
    if history.live:
        newest = {place.step: place for place in _on_path(history) if place.kind in OUTPUT_LANDED}
        found |= {place.seq for place in newest.values()}
        wanted |= {place.parent for place in newest.values()}
    return found | {place.seq for place in places if place.id in wanted} if wanted else found


def _on_path(history: RetentionHistory) -> list[RetentionRow]:
    """Return the rows that lead to the head, in order.

    If a gap hides part of the path, all rows older than the gap count as part of it.
    """
    known = {place.id: place for place in history.places}
    found: list[RetentionRow] = []
    at = history.head
    while at in known:
        found.append(known[at])
        at = known[at].parent
    if not found or at is None:
        return found[::-1]
    return [place for place in history.places if place.seq < found[-1].seq] + found[::-1]


def orphans(places: Sequence[RetentionRow], going: Collection[int]) -> list[int]:
    """Return the remaining rows that lose the row they build on: not anchors, and the row before them is removed."""
    gone = set(going)
    return [place.seq for place in places if place.seq not in gone and not place.anchor and place.seq - 1 in gone]


def stretches(seqs: Iterable[int]) -> list[tuple[int, int]]:
    """Group numbers in order into stretches without a hole."""
    found: list[tuple[int, int]] = []
    for seq in seqs:
        if found and found[-1][1] == seq - 1:
            found[-1] = (found[-1][0], seq)
        else:
            found.append((seq, seq))
    return found


def within(seqs: Iterable[int], ranges: Sequence[Sequence[int]]) -> list[int]:
    """Return the numbers that lie in one of the ranges; both are sorted."""
    found, left = [], list(reversed(ranges))
    for seq in seqs:
        while left and left[-1][1] < seq:
            left.pop()
        if left and left[-1][0] <= seq:
            found.append(seq)
    return found


def batches(places: Sequence[RetentionRow], going: Sequence[int], size: int) -> list[list[int]]:
    """Split the numbers to remove into portions of about `size`.

    Each portion ends where the next row can be read without the removed ones.
    """
    if len(going) <= size:
        return [list(going)] if going else []
    gone, anchors = set(going), {place.seq for place in places if place.anchor}
    found: dict[int, list[int]] = defaultdict(list)
    number = 0
    for seq in going:
        found[number].append(seq)
        if len(found[number]) >= size and (seq + 1 not in gone or seq + 1 in anchors):
            number += 1
    return list(found.values())
